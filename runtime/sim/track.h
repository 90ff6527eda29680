// A Program as those see it who walk it: the order of each stream, what waits for what, and its collectives,
// of which a Program has few kinds that come again and again. Made once for all devices of a role.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/cost/kernel_costs.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

class Track {
 public:
  struct Slot {
    const Instr* instr;  // the first of them
    std::size_t index;   // in the Program
    std::int64_t count;  // of them in the Program
    const instr::Collective& collective() const { return std::get<instr::Collective>(instr->op); }
  };

  // Program and machine outlive the track.
  Track(const Program& program, const Machine& machine);

  const Program& program() const { return *program_; }
  std::size_t size() const { return slot_of_.size(); }
  const std::vector<std::int32_t>& stream(std::size_t s) const { return order_[s]; }
  std::span<const Event> waits(std::size_t instr) const {
    return {waits_.data() + first_wait_[instr], waits_.data() + first_wait_[instr + 1]};
  }
  // Of instructions that meet nobody.
  Nanos duration(std::size_t instr) const { return durations_[instr]; }
  // Of collectives.
  Nanos duration(const Slot& slot, const Where& where) const { return costs_.meeting(slot.index, where); }
  // How one that meets nobody is reckoned, for people.
  std::string explain(std::size_t instr) const { return costs_.explain(instr); }
  std::string explain(const Slot& slot, const Where& where) const {
    return costs_.explain(slot.index, where);
  }
  // How many instructions its kernel does.
  std::size_t together(std::size_t instr) const { return costs_.together(instr); }

  // Of the machine's feeder: what handing over takes; whether it first waits for the device, and up to which
  // message of the recv stream. Instructions that compute or communicate in groups have turns, in the order
  // of the Program; messages have none (-1).
  bool fed() const { return !feeding_.empty(); }
  Nanos feeding(std::size_t instr) const { return feeding_[instr]; }
  bool drains(std::size_t instr) const { return drains_[instr]; }
  std::int32_t arrival(std::size_t instr) const { return arrivals_[instr]; }
  bool in_order() const { return in_order_; }
  std::int32_t turn(std::size_t instr) const { return turns_[instr]; }

  // Collectives that are equal have one slot; -1: no collective.
  std::int32_t slot(std::size_t instr) const { return slot_of_[instr]; }
  const std::vector<Slot>& slots() const { return slots_; }

 private:
  void take(const Machine& machine);

  const Program* program_;
  KernelCosts costs_;
  std::array<std::vector<std::int32_t>, kStreams> order_;
  std::vector<std::uint32_t> first_wait_;
  std::vector<Event> waits_;
  std::vector<Nanos> durations_, feeding_;
  std::vector<bool> drains_;
  bool in_order_ = false;
  std::vector<std::int32_t> turns_, arrivals_;
  std::vector<std::int32_t> slot_of_;
  std::vector<Slot> slots_;
};

}  // namespace hyperrun

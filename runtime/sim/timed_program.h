// A TimedProgram is a Program prepared for simulation: the order of each stream, the waits of each
// instruction, its duration on a machine, and the Program's distinct collectives. A Program repeats few kinds
// of collectives many times. It is made once for all devices of a role.
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

class TimedProgram {
 public:
  struct DistinctCollective {
    const Instr* instr;  // the first instruction of this kind
    std::size_t index;   // index of `instr` in the Program
    std::int64_t count;  // number of such instructions in the Program
    const instr::Collective& collective() const { return std::get<instr::Collective>(instr->op); }
  };

  // The Program and the machine must outlive it.
  TimedProgram(const Program& program, const Machine& machine);

  const Program& program() const { return *program_; }
  std::size_t size() const { return collective_index_.size(); }
  const std::vector<std::int32_t>& stream(std::size_t s) const { return order_[s]; }
  std::span<const Event> waits(std::size_t instr) const {
    return {waits_.data() + first_wait_[instr], waits_.data() + first_wait_[instr + 1]};
  }
  // Duration of an instruction that is no collective.
  Nanos duration(std::size_t instr) const { return durations_[instr]; }
  // Duration of a collective in a group that lies on the machine like `where`.
  Nanos duration(const DistinctCollective& distinct, const Where& where) const {
    return costs_.meeting(distinct.index, where);
  }
  // The calculation of a duration, as text for people.
  std::string explain(std::size_t instr) const { return costs_.explain(instr); }
  std::string explain(const DistinctCollective& distinct, const Where& where) const {
    return costs_.explain(distinct.index, where);
  }
  // Number of instructions that the instruction's kernel runs.
  std::size_t together(std::size_t instr) const { return costs_.together(instr); }

  // The machine's feeder hands instructions over one after another. feeding(): the time that handing over
  // takes. drains(): true if the feeder first waits for all instructions handed over. arrival(): the message
  // of the recv stream that it first waits for. Instructions that compute or communicate in groups have
  // turns, in the order of the Program; messages have none (-1).
  bool fed() const { return !feeding_.empty(); }
  Nanos feeding(std::size_t instr) const { return feeding_[instr]; }
  bool drains(std::size_t instr) const { return drains_[instr]; }
  std::int32_t arrival(std::size_t instr) const { return arrivals_[instr]; }
  bool in_order() const { return in_order_; }
  std::int32_t turn(std::size_t instr) const { return turns_[instr]; }

  // Index into collectives(); equal collectives have the same one. -1: no collective.
  std::int32_t collective_index(std::size_t instr) const { return collective_index_[instr]; }
  const std::vector<DistinctCollective>& collectives() const { return collectives_; }

 private:
  void feed_from(const Machine& machine);

  const Program* program_;
  KernelCosts costs_;
  std::array<std::vector<std::int32_t>, kStreams> order_;
  std::vector<std::uint32_t> first_wait_;
  std::vector<Event> waits_;
  std::vector<Nanos> durations_, feeding_;
  std::vector<bool> drains_;
  bool in_order_ = false;
  std::vector<std::int32_t> turns_, arrivals_;
  std::vector<std::int32_t> collective_index_;
  std::vector<DistinctCollective> collectives_;
};

}  // namespace hyperrun

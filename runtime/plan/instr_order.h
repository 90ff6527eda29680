// Dependencies between the instructions of a Program: the earlier ones of their streams, and events. An
// analysis may leave out some instructions, such as weight gradients. Waits of these do not carry over to
// later instructions of their stream; instead the producers of what an instruction reads count as
// dependencies. Positions are indices of instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

class InstrOrder {
 public:
  explicit InstrOrder(const Program& program);

  // Direct dependencies: the previous instruction of the stream, and events.
  std::span<const std::int32_t> before(std::size_t instr) const { return before_.of(instr); }

  // Which instructions in [from, to] depend on one of `sources`. An instruction in `left_out` runs at another
  // time: later ones do not wait for it, except in its stream for what comes before it.
  std::vector<bool> behind(const std::vector<bool>& sources, std::size_t from, std::size_t to,
                           const std::vector<bool>* left_out = nullptr) const;

  // Earliest start of each instruction from `from` on that is marked in `behind`, relative to the sources.
  // All others have ended and have 0.
  std::vector<double> begins_behind(const std::vector<double>& durations, const std::vector<bool>& behind,
                                    std::size_t from, const std::vector<bool>* left_out = nullptr) const;

  // Start of each instruction in [from, to], if all before `from` have ended at 0.
  std::vector<double> begins(const std::vector<double>& durations, std::size_t from, std::size_t to) const;

 private:
  // True if the dependency holds with these instructions left out.
  bool waits(std::size_t instr, std::size_t before, const std::vector<bool>* left_out) const {
    if (left_out == nullptr || static_cast<std::int32_t>(before) == previous_[instr]) return true;
    return !(*left_out)[instr] && !(*left_out)[before];
  }

  // Dependencies of all instructions in one array.
  struct Before {
    std::vector<std::size_t> first{0};
    std::vector<std::int32_t> before;
    std::span<const std::int32_t> of(std::size_t instr) const {
      return std::span(before).subspan(first[instr], first[instr + 1] - first[instr]);
    }
    void end_instr() { first.push_back(before.size()); }
  };

  template <class Visit>
  void each_before(std::size_t instr, const std::vector<bool>* left_out, Visit visit) const {
    for (const std::int32_t b : before_.of(instr))
      if (const auto i = static_cast<std::size_t>(b); waits(instr, i, left_out)) visit(i);
    if (left_out == nullptr || (*left_out)[instr]) return;
    for (const std::int32_t b : makers_.of(instr))
      if (const auto i = static_cast<std::size_t>(b); !(*left_out)[i]) visit(i);
  }

  Before before_, makers_;              // `makers_`: producers on other streams of what an instruction reads
  std::vector<std::int32_t> previous_;  // previous instruction of the stream; -1: none
};

}  // namespace hyperrun

// What the instructions of a Program wait for: those before them in their streams, and their events. Where
// some are left out, what these wait for no longer stands for those behind them in their streams, and who
// makes what an instruction reads counts as well.
// Positions are indices of instructions.
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

  // What an instruction waits for: of its own stream the one before it, and those of its events.
  std::span<const std::int32_t> before(std::size_t instr) const { return before_.of(instr); }

  // Of instructions `from` to `to` (included), which cannot begin before one of `sources` can. What is left
  // out is done at another time: nothing waits for it, but in its stream for what comes before it.
  std::vector<bool> behind(const std::vector<bool>& sources, std::size_t from, std::size_t to,
                           const std::vector<bool>* left_out = nullptr) const;

  // How long after the sources the instructions from `from` on that are behind them can begin, each: all
  // others have ended, and have 0.
  std::vector<double> begins_behind(const std::vector<double>& durations, const std::vector<bool>& behind,
                                    std::size_t from, const std::vector<bool>* left_out = nullptr) const;

  // When instructions `from` to `to` (included) begin, if those before `from` have ended at 0.
  std::vector<double> begins(const std::vector<double>& durations, std::size_t from, std::size_t to) const;

 private:
  // What it waits for where some are left out.
  bool waits(std::size_t instr, std::size_t before, const std::vector<bool>* left_out) const {
    if (left_out == nullptr || static_cast<std::int32_t>(before) == previous_[instr]) return true;
    return !(*left_out)[instr] && !(*left_out)[before];
  }

  // Of each instruction those that it waits for, one after the other.
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

  Before before_, makers_;              // `makers_`: of what it reads, on other streams
  std::vector<std::int32_t> previous_;  // of its own stream; -1: none
};

}  // namespace hyperrun

// The paced clock of one Program. Each instruction lasts as long as the simulator says, times a dilation that
// makes room for the real work. The measured times, divided by the dilation, are compared with the simulated
// ones:
//
//   simulated             [a a][b]
//   paced, dilation 3     [a a a a a a][b b b]
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/stats.h"
#include "runtime/report/report.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

class PacedClock {
 public:
  // The session must outlive the object. The dilation is the job's, if it gives one. Else the first
  // invocation determines it: starting and waking may take at most the share `overhead` of the instructions'
  // time.
  PacedClock(const Session& session, std::string_view program, double overhead = 0.01);

  // 0 until the Program has run once on the native clock, which shows how long the real work takes.
  double dilation() const { return use_.dilation; }

  // Adds the statistics of the next invocation, by device. They must be traced.
  void add(std::span<const InvocationStats> stats);

  const PacedUse& use() const { return use_; }

 private:
  void choose_dilation(std::span<const InvocationStats> stats);
  void compare(std::span<const InvocationStats> stats);

  const Plan& plan_;  // the plan whose instructions are simulated
  std::string program_;
  double overhead_;
  SimResult simulated_;
  std::vector<double> measured_;                    // by paced invocation, ns of the modelled machine
  std::map<std::string, PacedInstruction> totals_;  // by kind of instruction, over invocations and devices
  PacedUse use_;
};

}  // namespace hyperrun

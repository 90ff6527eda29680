// The paced clock of a run: what each instruction lasts by the simulator, how much all of it is stretched so
// that the real work fits, and how the measured times compare.
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

class Pacing {
 public:
  // Of one Program. The session outlives it. The job's own dilation is taken, if it gives one; else time is
  // stretched until starting and waking take no more than `overhead` of an instruction's time on average.
  Pacing(const Session& session, std::string_view program, double overhead = 0.01);

  // 0 until the Program has run once on the native clock, which shows how much work there is.
  double dilation() const { return use_.dilation; }

  // What the devices report of the next invocation, traced.
  void add(std::span<const InvocationStats> stats);

  const PacedUse& use() const { return use_; }

 private:
  void choose(std::span<const InvocationStats> stats);
  void compare(std::span<const InvocationStats> stats);

  const Plan& plan_;  // that says how long instructions last
  std::string program_;
  double overhead_;
  SimResult simulated_;
  std::vector<double> measured_;                    // of each paced invocation, ns of the modelled machine
  std::map<std::string, PacedInstruction> totals_;  // by instruction, over all of them and all devices
  PacedUse use_;
};

}  // namespace hyperrun

#include "runtime/run/paced_clock.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/median.h"
#include "runtime/cost/groups.h"

namespace hyperrun {
namespace {

// The least ratio of paced time to real work. With cores idle three quarters of the time, hardly any
// instruction waits for one.
constexpr double kRoom = 4;
// The cost of starting, stopping and waking one instruction, ns. A thread that wakes may also wait for the
// real work of others, about as long as an instruction works; choose_dilation() adds that.
constexpr double kOverheadNanos = 400e3;

// The wall time of an invocation, ns.
std::int64_t wall(std::span<const InvocationStats> stats) {
  std::int64_t begin = stats.front().begin, end = stats.front().end;
  for (const InvocationStats& s : stats) begin = std::min(begin, s.begin), end = std::max(end, s.end);
  return end - begin;
}

std::int64_t length(const Span& s) { return s.end - s.begin; }

}  // namespace

PacedClock::PacedClock(const Session& session, std::string_view program, double overhead)
    : plan_(session.pace()),
      program_(program),
      overhead_(overhead),
      simulated_(simulate(plan_, program_, session.job.supernode,
                          hosts_of(machine_of(session.job.supernode), session.job.supernode.devices))) {
  use_.dilation = session.job.run.dilation;
  if (session.original) use_.original_peak = session.original->peak();
  use_.predicted = simulated_.makespan;
}

void PacedClock::add(std::span<const InvocationStats> stats) {
  if (use_.dilation > 0)
    compare(stats);
  else
    choose_dilation(stats);
}

void PacedClock::choose_dilation(std::span<const InvocationStats> stats) {
  double overhead = 0;
  for (const InvocationStats& s : stats) {
    const Nanos working = s.busy[static_cast<std::size_t>(StreamKind::kCube)] +
                          s.busy[static_cast<std::size_t>(StreamKind::kVector)];
    overhead = std::max(overhead, static_cast<double>(std::ssize(s.spans)) * kOverheadNanos +
                                      static_cast<double>(working.value));
  }
  overhead /= overhead_;
  const double room = kRoom * static_cast<double>(wall(stats));
  use_.dilation = std::ceil(std::max(overhead, room) / static_cast<double>(use_.predicted.value));
}

void PacedClock::compare(std::span<const InvocationStats> stats) {
  const auto undilated = [&](std::int64_t t) { return std::llround(static_cast<double>(t) / use_.dilation); };
  for (std::size_t d = 0; d < stats.size(); ++d) {
    const auto device = static_cast<int>(d);
    const std::vector<Instr>& instrs = plan_.of_device(device).program(program_).instrs;
    const std::vector<Span>& predicted = simulated_.times(device).spans;
    HR_CHECK(stats[d].spans.size() == instrs.size() && predicted.size() == instrs.size());
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      const auto* c = std::get_if<instr::Collective>(&instrs[i].op);
      const std::string what(c == nullptr ? name(instrs[i].op) : name(c->kind));
      PacedInstruction& total = totals_.try_emplace(what, PacedInstruction{what}).first->second;
      ++total.count;
      total.predicted += Nanos(length(predicted[i]));
      total.measured += Nanos(undilated(length(stats[d].spans[i])));
    }
  }
  measured_.push_back(static_cast<double>(undilated(wall(stats))));
  use_.measured = Nanos(std::llround(median(measured_)));
  use_.steps = std::ssize(measured_);
  use_.instructions.clear();
  for (const auto& [what, total] : totals_) use_.instructions.push_back(total);
  std::ranges::sort(use_.instructions, std::greater{}, &PacedInstruction::predicted);
}

}  // namespace hyperrun

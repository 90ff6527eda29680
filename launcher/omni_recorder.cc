#include "launcher/omni_recorder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "launcher/results.h"
#include "launcher/run.h"
#include "runtime/report/loss_chart.h"

namespace hyperrun {

OmniRecorder::OmniRecorder(OmniReport report, const RunDirectory& directory, bool quiet)
    : report_(std::move(report)),
      directory_(directory),
      quiet_(quiet),
      metrics_(directory.file(kMetricsFile)),
      trace_(std::make_unique<TraceWriter>(directory.file(kTraceFile))),
      used_(static_cast<std::size_t>(report_.devices)) {}

void OmniRecorder::begin(const std::vector<control::DeviceInfo>& devices) {
  start_ = unix_time().value;
  for (const control::DeviceInfo& d : devices) {
    hosts_.push_back(d.host);
    trace_->device(d.rank, d.host, std::array{TraceStream::kProgram});
  }
}

void OmniRecorder::ran(const std::string& program, const std::string& title,
                       std::span<const std::int32_t> ranks, std::span<const control::InvocationDone> results,
                       bool of_a_step) {
  double seconds = 0;
  const std::vector<InvocationStats> stats = stats_of(results);
  for (std::size_t d = 0; d < stats.size(); ++d) {
    const InvocationStats& s = stats[d];
    trace_->slice({ranks[d],
                   TraceStream::kProgram,
                   title,
                   program,
                   Nanos(s.begin - start_),
                   Nanos(s.end - start_),
                   {},
                   {}});
    if (!of_a_step) continue;
    if (std::exchange(paused_, false)) {
      if (last_ > first_) running_ += static_cast<double>(last_ - first_) / 1e9;
      first_ = s.begin, last_ = s.end;
      step_ended_ = Nanos(s.begin);
    }
    first_ = std::min(first_, s.begin);
    last_ = std::max(last_, s.end);
    used_[static_cast<std::size_t>(ranks[d])] = true;
    seconds += static_cast<double>(s.end - s.begin) / 1e9;
  }
  if (of_a_step) count(program, stats.size(), seconds);
}

void OmniRecorder::count(const std::string& program, std::size_t devices, double seconds) {
  busy_ += seconds;
  auto known = std::ranges::find(report_.programs, program, &ProgramUse::name);
  if (known == report_.programs.end())
    known = report_.programs.insert(known, {program, static_cast<std::int64_t>(devices), 0, 0});
  known->devices = std::max(known->devices, static_cast<std::int64_t>(devices));
  ++known->runs;
  known->seconds += seconds;
}

void OmniRecorder::step(OmniMetrics m) {
  m.time = Nanos(last_);
  m.step_time = m.time - std::exchange(step_ended_, m.time);
  metrics_.write(to_json_line(m));
  losses_.push_back(m.loss);
  report_.step_seconds.push_back(static_cast<double>(m.step_time.value) / 1e9);
  ++report_.steps;
  if (quiet_) return;
  std::string items;
  for (const std::int64_t n : m.items) items += (items.empty() ? "" : " and ") + std::to_string(n);
  std::printf("step %lld: loss %.4f, grad_norm %.3f, %s items, %.3f s\n", static_cast<long long>(m.step),
              m.loss, m.grad_norm, items.c_str(), static_cast<double>(m.step_time.value) / 1e9);
  std::fflush(stdout);
}

void OmniRecorder::evaluation(OmniEvaluation e) {
  e.time = unix_time();
  metrics_.write(to_json_line(e));
  report_.evaluations.push_back(e);
  if (quiet_) return;
  std::printf("after %lld steps: %s right of %lld held back %.1f %%, of %lld texts (by chance %.1f %%)\n",
              static_cast<long long>(e.step), e.encoder.c_str(), static_cast<long long>(e.samples),
              100 * e.share(), static_cast<long long>(e.texts), 100 * e.chance());
  std::fflush(stdout);
}

void OmniRecorder::finish() {
  if (std::exchange(finished_, true)) return;
  report_.seconds = running_ + static_cast<double>(std::max<std::int64_t>(0, last_ - first_)) / 1e9;
  const auto devices = std::ranges::count(used_, true);
  if (report_.seconds > 0 && devices > 0)
    report_.utilisation = busy_ / (report_.seconds * static_cast<double>(devices));
  directory_.write(kReportFile, to_json(report_));
  LossChart chart{report_.job, "mean of the tokens that a step was to tell", {}};
  for (std::size_t i = 0; i < losses_.size(); ++i)
    chart.points.push_back({static_cast<std::int64_t>(i) + 1, losses_[i]});
  directory_.write(kLossFile, to_svg(chart));
  trace_->close();
}

}  // namespace hyperrun

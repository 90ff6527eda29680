#include "launcher/reinforcement_recorder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "launcher/results.h"
#include "runtime/report/loss_chart.h"

namespace hyperrun {
namespace {

constexpr std::string_view kRewardFile = "reward.svg";

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ReinforcementRecorder::ReinforcementRecorder(ReinforcementReport report, const RunDirectory& directory,
                                             bool quiet)
    : report_(std::move(report)),
      directory_(directory),
      quiet_(quiet),
      metrics_(directory.file(kMetricsFile)),
      trace_(std::make_unique<TraceWriter>(directory.file(kTraceFile))) {}

void ReinforcementRecorder::begin(const std::vector<control::DeviceInfo>& devices) {
  start_ = unix_time();
  step_ended_ = Nanos(start_);
  for (const control::DeviceInfo& d : devices) {
    hosts_.push_back(d.host);
    trace_->device(d.rank, d.host, std::array{TraceStream::kProgram});
  }
}

void ReinforcementRecorder::ran(const std::string& program, const std::string& title,
                                std::span<const std::int32_t> ranks,
                                std::span<const control::InvocationDone> results) {
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
    first_ = first_ == 0 ? s.begin : std::min(first_, s.begin);
    last_ = std::max(last_, s.end);
    seconds += static_cast<double>(s.end - s.begin) / 1e9;
  }
  count(program, stats.size(), seconds);
}

void ReinforcementRecorder::count(const std::string& program, std::size_t devices, double seconds) {
  busy_ += seconds;
  auto known = std::ranges::find(report_.programs, program, &ProgramUse::name);
  if (known == report_.programs.end())
    known = report_.programs.insert(known, {program, static_cast<std::int64_t>(devices), 0, 0});
  ++known->runs;
  known->seconds += seconds;
}

void ReinforcementRecorder::decoded(std::int64_t filled, std::int64_t slots) {
  filled_ += static_cast<double>(filled) / static_cast<double>(slots);
  ++report_.decode_passes;
}

void ReinforcementRecorder::learned(std::int64_t completions, std::int64_t tokens) {
  report_.learned_completions += completions;
  report_.learned_tokens += tokens;
}

void ReinforcementRecorder::step(ReinforcementMetrics m) {
  m.time = Nanos(unix_time());
  m.step_time = m.time - std::exchange(step_ended_, m.time);
  metrics_.write(to_json_line(m));
  rewards_.push_back(m.reward);
  ++report_.steps;
  if (quiet_) return;
  std::printf("step %lld: reward %.3f, %.1f %% correct, %.1f tokens, kl %.4f, %lld behind, %.2f s\n",
              static_cast<long long>(m.step), m.reward, 100 * m.correct, m.length, m.kl,
              static_cast<long long>(m.staleness), static_cast<double>(m.step_time.value) / 1e9);
  std::fflush(stdout);
}

void ReinforcementRecorder::evaluation(EvaluationMetrics m) {
  m.time = Nanos(unix_time());
  metrics_.write(to_json_line(m));
  report_.evaluations.push_back(m);
  if (quiet_) return;
  std::printf("after %lld steps: reward %.3f on tasks held back, %.1f %% correct\n",
              static_cast<long long>(m.step), m.reward, 100 * m.correct);
  std::fflush(stdout);
}

void ReinforcementRecorder::finish() {
  if (std::exchange(finished_, true)) return;
  report_.seconds = static_cast<double>(last_ - first_) / 1e9;
  if (last_ > first_) report_.utilisation = busy_ / (report_.seconds * static_cast<double>(report_.devices));
  if (report_.decode_passes > 0) report_.filled_slots = filled_ / static_cast<double>(report_.decode_passes);
  directory_.write(kReportFile, to_json(report_));
  LossChart chart{report_.job, "reward of each step's completions", {}};
  for (std::size_t i = 0; i < rewards_.size(); ++i)
    chart.points.push_back({static_cast<std::int64_t>(i) + 1, rewards_[i]});
  chart.what = "reward";
  directory_.write(kRewardFile, to_svg(chart));
  trace_->close();
}

}  // namespace hyperrun

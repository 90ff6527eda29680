#include "runtime/run/programs_recorder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "runtime/run/results.h"

namespace hyperrun {

ProgramsRecorder::ProgramsRecorder(RecorderOutputs outputs) : Recorder(std::move(outputs)) {}

void ProgramsRecorder::begin_device(const tasks::DeviceInfo& device) {
  if (used_.empty()) start_ = now().value;
  if (device.rank < std::ssize(used_)) return;  // the devices have started again
  used_.push_back(false);
  if (trace() != nullptr) trace()->device(device.rank, device.host, std::array{TraceStream::kProgram});
}

void ProgramsRecorder::forget_steps_after(std::int64_t step) {
  curve_.resize(std::min(curve_.size(), static_cast<std::size_t>(step)));
  common().steps = std::ssize(curve_);
  pause();
}

void ProgramsRecorder::ran(const std::string& program, const std::string& title,
                           std::span<const std::int32_t> ranks,
                           std::span<const tasks::InvocationDone> results, bool of_a_step) {
  double seconds = 0;
  const std::vector<InvocationStats> stats = stats_of(results);
  for (std::size_t d = 0; d < stats.size(); ++d) {
    const Nanos begin(stats[d].begin), end(stats[d].end);
    if (trace() != nullptr)
      trace()->slice({ranks[d],
                      TraceStream::kProgram,
                      title,
                      program,
                      begin - Nanos(start_),
                      end - Nanos(start_),
                      {},
                      {}});
    if (!of_a_step) continue;
    if (std::exchange(paused_, false)) {
      running_ += static_cast<double>(last_ - first_) / 1e9;
      first_ = begin.value, last_ = end.value;
      step_ended_ = begin;
    }
    first_ = std::min(first_, begin.value);
    last_ = std::max(last_, end.value);
    used_[static_cast<std::size_t>(ranks[d])] = true;
    seconds += static_cast<double>((end - begin).value) / 1e9;
  }
  if (of_a_step) count(program, stats.size(), seconds);
}

void ProgramsRecorder::count(const std::string& program, std::size_t devices, double seconds) {
  busy_ += seconds;
  std::vector<ProgramUse>& programs = common().programs;
  auto known = std::ranges::find(programs, program, &ProgramUse::name);
  if (known == programs.end()) known = programs.insert(known, {program, 0, 0, 0});
  known->devices = std::max(known->devices, static_cast<std::int64_t>(devices));
  ++known->runs;
  known->seconds += seconds;
}

Nanos ProgramsRecorder::end_step(double value) {
  curve_.push_back(value);
  ++common().steps;
  return last_end() - std::exchange(step_ended_, last_end());
}

void ProgramsRecorder::print(const std::string& line) const {
  if (quiet()) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void ProgramsRecorder::summarise() {
  ProgramsReport& report = common();
  report.seconds = running_ + static_cast<double>(last_ - first_) / 1e9;
  const auto devices = std::ranges::count(used_, true);
  if (report.seconds > 0) report.utilisation = busy_ / (report.seconds * static_cast<double>(devices));
}

std::vector<LossPoint> ProgramsRecorder::points() const {
  std::vector<LossPoint> points;
  for (std::size_t i = 0; i < curve_.size(); ++i)
    points.push_back({static_cast<std::int64_t>(i) + 1, curve_[i]});
  return points;
}

}  // namespace hyperrun

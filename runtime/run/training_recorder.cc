#include "runtime/run/training_recorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/compile/learning_rate.h"
#include "runtime/report/instruction_trace.h"
#include "runtime/run/device_use.h"
#include "runtime/run/run_timeline.h"

namespace hyperrun {
namespace {

// The share of a step that communication is exposed, as the mean over the devices.
double exposed_share(std::span<const InvocationStats> stats) {
  double share = 0;
  for (const InvocationStats& s : stats)
    share += static_cast<double>(s.exposed.value) /
             static_cast<double>(std::max<std::int64_t>(1, s.end - s.begin));
  return share / static_cast<double>(stats.size());
}

}  // namespace

TrainingRecorder::TrainingRecorder(const Job& job, const Plan& plan, RecorderOutputs outputs)
    : Recorder(std::move(outputs)), job_(job), plan_(plan) {
  if (!quiet()) progress_.emplace(ProgressOptions{.steps = job.training.steps});
  report_.job = job.name;
  report_.parameters = parameters(plan);
}

void TrainingRecorder::begin_device(const tasks::DeviceInfo& info) {
  if (const auto known = std::ranges::find(report_.devices, info.rank, &DeviceReport::device);
      known != report_.devices.end()) {
    known->host = info.host;
    return;
  }
  DeviceReport device = planned_use(job_, plan_.of_device(info.rank));
  device.device = info.rank;
  device.host = info.host;
  for (std::size_t s = 0; s < kStreams; ++s)
    device.streams.push_back({std::string(name(static_cast<StreamKind>(s))), {}});
  report_.devices.push_back(std::move(device));
  if (trace() != nullptr) trace()->device(info.rank, info.host);
}

void TrainingRecorder::change_layout() {
  report_.devices.clear();
  programs_.clear();
}

std::int64_t TrainingRecorder::steps_done() const {
  return report_.steps.empty() ? 0 : report_.steps.back().step;
}

void TrainingRecorder::forget_steps_after(std::int64_t step) {
  last_end_ = 0;
  while (!report_.steps.empty() && report_.steps.back().step > step) {
    report_.time -= report_.steps.back().time;
    report_.tokens -= std::int64_t{job_.training.batch} * job_.model.sequence;
    report_.steps.pop_back();
  }
}

void TrainingRecorder::step(std::int64_t step, double loss, double grad_norm,
                            std::span<const InvocationStats> stats, bool traced) {
  std::int64_t begin = stats[0].begin, end = stats[0].end;
  Bytes peak{};
  for (const InvocationStats& s : stats) {
    begin = std::min(begin, s.begin);
    end = std::max(end, s.end);
    peak = std::max(peak, s.high_water[index_of(Tier::kHbm)]);
  }
  const Nanos time = step_time(begin, end);

  StepMetrics m;
  m.step = step + 1;
  m.loss = loss;
  m.grad_norm = grad_norm;
  m.tokens = std::int64_t{job_.training.batch} * job_.model.sequence;
  m.tokens_per_second = static_cast<double>(m.tokens) / (static_cast<double>(time.value) * 1e-9);
  m.step_time = time;
  m.hbm_peak = peak;
  m.hbm_budget = job_.supernode.hbm;
  m.exposed_communication = exposed_share(stats);
  m.lr = learning_rate(job_.training, step);
  m.time = Nanos(end);
  plan_for("train");
  write(to_json_line(m));
  if (progress_) progress_->update(m);
  add_to_report(step, loss, grad_norm, stats, time);
  if (traced) add_to_trace(step, stats);
  if (timeline() != nullptr) timeline()->step(step + 1, begin, end);
}

void TrainingRecorder::paced(const PacedUse& use) {
  report_.paced = use;
  if (timeline() != nullptr) timeline()->paced(use.dilation, static_cast<double>(use.predicted.value) / 1e9);
}

// A step lasts from the end of the step before. The first step lasts from its own begin.
Nanos TrainingRecorder::step_time(std::int64_t begin, std::int64_t end) {
  if (start_ == 0) start_ = begin;
  if (last_end_ == 0) last_end_ = begin;
  return Nanos(end - std::exchange(last_end_, end));
}

void TrainingRecorder::ran(const std::string& program, std::span<const InvocationStats> stats) {
  plan_for(program);
  for (std::size_t d = 0; d < stats.size(); ++d) add_memory(stats[d], report_.devices[d]);
  if (timeline() != nullptr && program == "init") timeline()->initialised(now());
}

// Adds a Program to those that have run. The report compares only their planned use with the executed use.
void TrainingRecorder::plan_for(const std::string& program) {
  if (!programs_.insert(program).second) return;
  for (DeviceReport& device : report_.devices) {
    std::vector<const Program*> programs;
    for (const std::string& p : programs_) programs.push_back(&plan_.of_device(device.device).program(p));
    set_planned(device, programs);
  }
}

void TrainingRecorder::add_to_report(std::int64_t step, double loss, double grad_norm,
                                     std::span<const InvocationStats> stats, Nanos time) {
  report_.time += time;
  report_.tokens += std::int64_t{job_.training.batch} * job_.model.sequence;
  report_.steps.push_back({step + 1, loss, grad_norm, time});
  for (std::size_t d = 0; d < stats.size(); ++d) add_steps(stats[d], report_.devices[d], 1);
}

void TrainingRecorder::add_to_trace(std::int64_t step, std::span<const InvocationStats> stats) {
  if (trace() == nullptr) return;
  trace()->instant(kAllDevices, fmt::format("step {}", step + 1), Nanos(stats[0].begin - start_));
  for (std::size_t d = 0; d < stats.size(); ++d)
    add_invocation(*trace(), plan_.of_device(static_cast<std::int64_t>(d)).program("train"),
                   static_cast<int>(d), step, stats[d], start_);
}

void TrainingRecorder::summarise() {
  if (progress_) progress_->finish();
}

Recorder::Chart TrainingRecorder::chart() const {
  LossChart chart{
      job_.name, fmt::format("{} parameters, {}", report_.parameters, describe_mesh(plan_.mesh)), {}};
  for (const StepReport& s : report_.steps) chart.points.push_back({s.step, s.loss.value_or(0)});
  return {kLossFile, std::move(chart)};
}

}  // namespace hyperrun

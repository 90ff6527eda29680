#include "runtime/run/run_timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/faults/policy.h"
#include "runtime/faults/walk.h"
#include "runtime/run/device_use.h"
#include "runtime/run/recorder.h"
#include "runtime/spec/faults_reader.h"

namespace hyperrun {
namespace {

GoodputParts parts_of(const FaultOutcome& o) {
  return {o.useful,  o.slower,   o.saving,  o.lost,   o.noticing,
          o.waiting, o.starting, o.reading, o.faults, o.changes};
}

}  // namespace

RunTimeline::RunTimeline(const Job& job, std::optional<FaultModel> model, double state_bytes)
    : job_(job),
      state_bytes_(state_bytes),
      clock_(job.run.clock == kPaced, job.run.dilation > 0 ? job.run.dilation : 1),
      devices_(job.supernode.devices) {
  if (!model) return;
  model->spares = job.supernode.spares, model->spare_share = 0;
  faults_.emplace(*std::move(model), job.supernode.devices, job.run.chaos.seed);
}

std::optional<FaultSpec> RunTimeline::start(std::int32_t devices) {
  devices_ = devices;
  armed_ = false;
  const Nanos now = unix_time();
  if (clock_.begun()) times_.start(clock_.at(now));
  if (!faults_) return std::nullopt;
  if (clock_.begun()) faults_->pass(clock_.at(now));
  next_ = faults_->start(devices);
  return clock_.begun() ? arm() : std::nullopt;
}

std::optional<FaultSpec> RunTimeline::first_step() {
  clock_.begin(unix_time());
  times_.begin(0);
  return armed_ ? std::nullopt : arm();
}

std::optional<FaultSpec> RunTimeline::arm() {
  armed_ = true;
  if (!next_) return std::nullopt;
  FaultSpec fault;
  fault.device = static_cast<std::int32_t>(next_->place);
  fault.at = clock_.time_of(next_->time).value;
  return fault;
}

// The devices that are there now, spares among them; only if faults are drawn.
std::int32_t RunTimeline::healthy() {
  if (clock_.begun()) faults_->pass(clock_.at(unix_time()));
  return faults_->healthy();
}

std::int32_t RunTimeline::gone() {
  return faults_ ? job_.supernode.devices + job_.supernode.spares - healthy() : 0;
}

double RunTimeline::wait(std::int32_t devices) {
  if (!faults_ || healthy() >= devices || clock_.skips()) return 0;
  const double seconds = faults_->time_until(devices) - clock_.at(unix_time());
  return std::isfinite(seconds) ? std::max(0.0, seconds) : 0;
}

void RunTimeline::await(std::int32_t devices) {
  if (!faults_ || healthy() >= devices) return;
  const double from = clock_.at(unix_time()), to = faults_->time_until(devices);
  if (to == std::numeric_limits<double>::infinity()) return;
  clock_.wait_until(to);
  const double now = std::max(to, clock_.at(unix_time()));
  faults_->pass(now);
  times_.waited(from, now);
}

void RunTimeline::initialised(Nanos end) {
  if (clock_.begun()) times_.read(clock_.at(end));
}

void RunTimeline::step(std::int64_t number, std::int64_t begin, std::int64_t end) {
  clock_.begin(Nanos(begin));
  const auto after = [number](std::int32_t every) { return every > 0 && (number - 1) % every == 0; };
  times_.step(number, clock_.at(Nanos(begin)), clock_.at(Nanos(end)), devices_ == job_.supernode.devices,
              after(job_.run.checkpoint_every) || after(job_.run.copy_every));
}

void RunTimeline::paced(double dilation, double predicted_step) {
  if (dilation > 0) clock_.stretch(dilation);
  step_of_[devices_] = predicted_step;
}

// A fault that was drawn is known by its time, another one by when it was found.
void RunTimeline::lost(Nanos found) {
  if (!clock_.begun()) return;
  const double time = clock_.at(found);
  std::optional<double> fault;
  if (faults_) fault = faults_->pass(time), faults_->end();
  times_.fault(fault.value_or(time));
}

std::optional<Goodput> RunTimeline::goodput() const {
  if (!times_.begun()) return std::nullopt;
  const auto simulated = step_of_.find(job_.supernode.devices);
  Goodput g{.steps = times_.steps(), .saves = times_.saves()};
  g.step = simulated != step_of_.end() ? simulated->second : times_.step_on_all();
  g.executed = parts_of(times_.outcome(g.step));
  if (faults_ && g.step > 0) g.foretold = parts_of(foretell(g.executed.seconds(), g.step));
  return g;
}

// The simulation of this run, within as much time and with the same faults.
FaultOutcome RunTimeline::foretell(double seconds, double step) const {
  const RunSpec& run = job_.run;
  const FaultPolicy policy{.name = "run",
                           .meaning = "as the job says",
                           .spares = true,
                           .elastic = run.elastic,
                           .copies = run.copy_every > 0};
  FaultModel model = faults_->model();
  model.horizon = seconds;
  FaultedRun of{.step = step, .state_bytes = state_bytes_, .devices = job_.supernode.devices};
  of.speeds = speeds(step);
  const std::int32_t every = policy.copies ? run.copy_every : run.checkpoint_every;
  const FaultWalk what{model, policy, of, costs_of(model, of), every > 0 ? every : job_.training.steps};
  return walk(what, faults_->history());
}

// The speed with so many devices, over that with all: as it was where so many have run, else in proportion.
std::vector<double> RunTimeline::speeds(double step) const {
  std::vector<double> speeds;
  for (std::int32_t d = 0; d <= job_.supernode.devices; ++d) {
    const auto known = step_of_.find(d);
    speeds.push_back(known != step_of_.end() ? step / known->second
                                             : static_cast<double>(d) / job_.supernode.devices);
  }
  return speeds;
}

std::optional<FaultModel> fault_model_of(const LoadedJob& loaded) {
  const RunSpec& run = loaded.job.run;
  if (run.chaos.model.empty()) return std::nullopt;
  const std::string place = loaded.source.place("run.chaos.model");
  if (!loaded.job.programs.empty())
    throw Error(Code::kBadValue, "the job has several programs, and faults are drawn for one training")
        .at(place)
        .legal("a job without programs")
        .fix("leave it out; \"faults\" and \"fault\" inject into such runs, too");
  if (run.clock == kPaced && run.dilation == 0)
    throw Error(Code::kBadValue, "faults come by the paced clock, whose dilation the job leaves open")
        .at(place)
        .legal("run.dilation above 0")
        .fix("run it once without the model: it says the dilation that it has chosen");
  try {
    return load_faults(run.chaos.model);
  } catch (Error& e) {
    if (e.code() == Code::kMissingFile) e.at(place);
    throw;
  }
}

double bytes_of_checkpoint(const Session& session) {
  const Plan& plan = session.original ? *session.original : session.plan;
  return 12.0 * static_cast<double>(parameters(plan));
}

}  // namespace hyperrun

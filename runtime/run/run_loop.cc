#include "runtime/run/run_loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/process/signal_watch.h"
#include "runtime/run/best_layout.h"
#include "runtime/run/device_use.h"
#include "runtime/run/failure.h"
#include "runtime/run/manifest.h"
#include "runtime/run/resume.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

// "after step 52, from the checkpoint after step 50: 2 steps again".
std::string describe(const Restart& r) {
  const std::int64_t again = std::max<std::int64_t>(0, r.after - r.from);
  std::string text =
      fmt::format("after step {}, from {}: {} {} again", r.after,
                  r.from > 0 ? fmt::format("the checkpoint after step {}", r.from) : "the begin", again,
                  again == 1 ? "step" : "steps");
  if (r.left_out.samples > 0)
    text += fmt::format(", without samples {} to {}", r.left_out.first + 1,
                        r.left_out.first + r.left_out.samples);
  return text;
}

std::string describe(const Recorder& recorder) {
  std::string text;
  for (const Restart& r : recorder.restarts()) {
    const double seconds = static_cast<double>(r.time.value) / 1e9;
    text += fmt::format("restarted {}, {}\n", describe(r),
                        seconds > 0 ? fmt::format("{:.1f} s until a step had ended", seconds)
                                    : "lost again before a step had ended");
  }
  if (const std::optional<Goodput> goodput = recorder.goodput();
      goodput && (goodput->foretold || !recorder.restarts().empty()))
    text += to_text(*goodput);
  return text;
}

RecorderOutputs outputs_of(const PreparedRun& run, RunTimeline& timeline) {
  RecorderOutputs outputs{.directory = &run.directory, .quiet = run.arguments.quiet, .timeline = &timeline};
  if (run.kind.traces()) outputs.trace = run.directory.file(kTraceFile);
  return outputs;
}

}  // namespace

RunLoop::RunLoop(PreparedRun run, const Starter& starter, Restarts restarts)
    : run_(std::move(run)),
      starter_(starter),
      restarts_(restarts),
      timeline_(run_.loaded.job, run_.fault_model, bytes_of_checkpoint(run_.kind.sessions().front())),
      recorder_(run_.kind.make_recorder(outputs_of(run_, timeline_))),
      chaos_(run_.loaded.job.run.chaos, devices(), run_.loaded.job.training.steps,
             run_.loaded.job.run.checkpoint_every > 0),
      fleet_(spec(), chaos_, timeline_, starter.survivors),
      left_(devices()) {
  chaos_.follow(timeline_);
}

int RunLoop::run() {
  run_.kind.announce();
  std::fflush(stdout);
  do {
    write_manifest(nullptr);
    start_devices();
  } while (goes_on());
  return conclude();
}

// Starts the devices, and returns when they have ended.
void RunLoop::start_devices() {
  driver_ = run_.kind.make_driver([this](std::int64_t step) { return fleet_.left(step) > left_; });
  driver_->inject(chaos_);
  failed_ = {};
  driver_->when_failed([this](const Error& cause) {
    failed_ = unix_time();
    timeline_.lost(failed_);
    if (!restarts_.possible(cause.code(), driver_->setback().diverged.has_value())) report(cause);
  });
  const Job& job = run_.kind.job();
  outcome_ = starter_.start(job, *driver_, chaos_.of_start(job.supernode.devices));
}

// Decides whether the devices start again, and prepares it. Signals that come meanwhile end the run.
bool RunLoop::goes_on() {
  const process::SignalWatch watch;
  const bool again = decide();
  if (process::SignalWatch::caught() == 0) return again;
  outcome_.signal = process::SignalWatch::caught();
  return false;
}

bool RunLoop::decide() {
  const bool returned = std::exchange(returned_, false);
  if (outcome_.ok() && driver_->paused()) {
    try {
      returned_ = true;
      begin_at_last_checkpoint();
      return true;
    } catch (const Error& e) {
      outcome_.error = e;
      report(e);
      return false;
    }
  }
  const Setback setback = driver_->setback();
  if (setback.trusted) remove_untrusted_checkpoints(*setback.trusted);
  if (outcome_.signal != 0 || !outcome_.error) return false;
  if (!restarts_.possible(outcome_.error->code(), setback.diverged.has_value())) return false;
  if (outcome_.all_done && !driver_->paused()) {
    std::fprintf(stderr, "all work was done when this happened: %s\n", outcome_.error->cause().c_str());
    outcome_.error.reset();
    return false;
  }
  if (starts_again(setback, returned)) return true;
  if (outcome_.signal == 0 && process::SignalWatch::caught() == 0) report(*outcome_.error);
  return false;
}

// Prepares the start after a loss. False: there is none; the outcome's error says why. `returned`: the start
// that failed was on devices that had come back.
bool RunLoop::starts_again(const Setback& setback, bool returned) {
  remove_unfinished_checkpoints(checkpoints());
  const Error cause = *outcome_.error;
  const bool none_came = returned && !outcome_.any_started && cause.code() == Code::kMpi;
  if (!none_came && !restarts_.again(outcome_, last_saved_step(), setback.diverged.has_value())) {
    if (restarts_.limit() > 0 && outcome_.any_started)
      std::fprintf(stderr, "%d %s without a new checkpoint, and no further one\n", restarts_.limit(),
                   restarts_.limit() == 1 ? "restart" : "restarts");
    return false;
  }
  if (setback.diverged) run_.kind.leave_out_samples_of(*setback.diverged);
  const std::string place = cause.place().empty() ? "" : cause.place() + ": ";
  std::fprintf(stderr, "%s%s: %s\n", place.c_str(), std::string(name(cause.code())).c_str(),
               cause.cause().c_str());
  try {
    if (none_came)
      fleet_.distrust_returned();
    else
      fleet_.look(recorder_->hosts());
    const std::int64_t from = begin_at_last_checkpoint();
    recorder_->go_on(cause, failed_, from, run_.kind.left_out());
  } catch (const Error& e) {
    outcome_.error = e;
    return false;
  }
  std::fprintf(stderr, "restart %d of %d %s\n", restarts_.in_a_row(), restarts_.limit(),
               describe(recorder_->restarts().back()).c_str());
  return true;
}

// Has the next start begin behind the last checkpoint, or at the begin of the run, on the devices that are
// left. Returns the number of steps that are done.
std::int64_t RunLoop::begin_at_last_checkpoint() {
  const RunSpec& run = run_.loaded.job.run;
  if (const double wait = fleet_.wait(run.elastic); wait > 1)
    std::fprintf(stderr, "waiting %.0f s until devices are repaired\n", wait);
  fleet_.await(run.elastic);
  const std::int32_t left = fleet_.left(last_saved_step());
  if (left < left_ && !run.elastic)
    throw Error(Code::kTooFewRanks,
                fmt::format("{} of {} devices are gone for good", devices() - left, devices()))
        .at("run.elastic")
        .legal("true: the run goes on with the best layout of the others")
        .fix("set it to true, add supernode.spares, or wait until they are back and resume");
  if (left == 0)
    throw Error(Code::kTooFewRanks, fmt::format("none of {} devices is left", devices()))
        .at("supernode.devices")
        .legal("one device at least, on a host that answers mpirun within 4 s")
        .fix("see to the hosts, and resume");
  if (std::exchange(left_, left) != left) {
    run_.kind.change_to(left == devices() ? run_.loaded.job : best_layout(run_.loaded.job, left));
    const Job& job = run_.kind.job();
    std::fprintf(stderr, "%d of %d devices are there; the run goes on with %d (%s)\n", left, devices(),
                 job.supernode.devices, describe_mesh(Mesh{job.parallel.mesh}).c_str());
  }
  const std::vector<fs::path> all = saved();
  for (std::size_t i = 0; i < all.size(); ++i) try {
      return run_.kind.go_on_from(all[i]);
    } catch (const Error& e) {
      const bool damaged = e.code() == Code::kBadCheckpoint || e.code() == Code::kMissingFile;
      if (!damaged || i + 1 == all.size()) throw;
      std::fprintf(stderr, "warning: %s cannot be read, the one before is taken: %s\n", all[i].c_str(),
                   e.cause().c_str());
    }
  return run_.kind.first_step();
}

int RunLoop::conclude() {
  if (!outcome_.ok()) remove_unfinished_checkpoints(checkpoints());
  recorder_->finish();
  if (outcome_.all_done)
    for (const FaultSpec& fault : chaos_.missed())
      std::fprintf(stderr, "warning: a fault of run.chaos did not happen: %s of device %d, %s %d\n",
                   fault.kind.c_str(), fault.device, fault.saving ? "saving after step" : "step", fault.step);
  write_manifest(&outcome_);
  run_.kind.conclude(run_.directory, outcome_.all_done);
  if (outcome_.all_done)
    std::printf("%s%srun directory: %s\n", describe(*recorder_).c_str(), recorder_->text().c_str(),
                run_.directory.path().c_str());
  std::fflush(stdout);
  if (outcome_.signal != 0) std::fprintf(stderr, "%s\n", outcome_.reason().c_str());
  if (!outcome_.ok()) std::fprintf(stderr, "what the run left is in %s\n", run_.directory.path().c_str());
  return outcome_.exit_status();
}

// Writes the results so far, and prints why the run ends.
void RunLoop::report(const Error& cause) {
  report_failure(run_.kind.with_remedy(cause), [this] { recorder_->finish(); });
}

// Removes what was saved or copied after the last comparison of the devices' state that has found nothing.
void RunLoop::remove_untrusted_checkpoints(std::int64_t trusted) const {
  std::vector<fs::path> untrusted = checkpoints_after(run_.directory.path(), trusted);
  if (!run_.copies.empty())
    for (const fs::path& copy : checkpoints_after(run_.copies, trusted)) untrusted.push_back(copy);
  for (const fs::path& checkpoint : untrusted) {
    std::fprintf(stderr, "removed %s: it may hold the corrupted state\n", checkpoint.c_str());
    std::error_code error;
    fs::remove_all(checkpoint, error);
    if (error) throw Error(Code::kUnwritable, error.message()).at(checkpoint.string());
  }
}

// All checkpoints, on the disk and in this host's memory, the newest first.
std::vector<fs::path> RunLoop::saved() const {
  std::vector<fs::path> all = checkpoints_after(run_.directory.path(), -1);
  if (!run_.copies.empty())
    for (const fs::path& copy : checkpoints_after(run_.copies, -1)) all.push_back(copy);
  std::ranges::stable_sort(all, std::greater(), saved_step);
  return all;
}

std::int64_t RunLoop::last_saved_step() const {
  const std::vector<fs::path> all = saved();
  return all.empty() ? 0 : saved_step(all.front());
}

void RunLoop::write_manifest(const control::Outcome* outcome) const {
  run_.directory.write(kManifestFile, to_json(manifest_of(run_.kind.job(), run_.arguments, *recorder_,
                                                          run_.started, outcome)));
}

}  // namespace hyperrun

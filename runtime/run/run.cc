#include "runtime/run/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/run/best_layout.h"
#include "runtime/run/device_use.h"
#include "runtime/run/failure.h"
#include "runtime/run/manifest.h"
#include "runtime/run/resume.h"
#include "runtime/run/saved_documents.h"
#include "runtime/spec/job_writer.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

LoadedJob load(const RunArguments& arguments) {
  LoadedJob loaded = load_job(arguments.job, JobUse::kOfPrograms);
  Job& job = loaded.job;
  if (!arguments.directory.empty()) job.run.directory = arguments.directory;
  set_resume(job, arguments.resume);
  check_inputs(loaded);
  if (!job.run.resume.empty()) {
    job.run.resume = find_checkpoint(job.run.resume);
    remove_unfinished_checkpoints(fs::path(job.run.resume).parent_path());
  }
  return loaded;
}

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
  for (const Restart& r : recorder.restarts())
    text += fmt::format("restarted {}, {:.1f} s until a step had ended\n", describe(r),
                        static_cast<double>(r.time.value) / 1e9);
  if (const std::optional<Goodput> goodput = recorder.goodput(); goodput && !recorder.restarts().empty())
    text += to_text(*goodput);
  return text;
}

std::unique_ptr<RunKind> make_kind(const LoadedJob& loaded) {
  if (loaded.job.programs.empty()) return make_training(loaded);
  return loaded.job.media.learns() ? make_omni(loaded) : make_reinforcement(loaded);
}

}  // namespace

void RunKind::change_to(const Job& /*job*/) {
  throw Error(Code::kBadLayout, "this kind of run keeps its layout, and not all of its devices are left")
      .fix("start it again with --resume when they are back");
}

Run::Run(const RunArguments& arguments)
    : arguments_(arguments),
      loaded_(load(arguments)),
      fault_model_(fault_model_of(loaded_)),
      started_(unix_time()),
      kind_(make_kind(loaded_)) {}

void Run::require_room(const OnThisHost& here, const fs::path& directory) {
  try {
    require_memory(job(), kind_->sessions(), here);
  } catch (Error& e) {
    throw e.at(loaded_.source.place("supernode.devices"));
  }
  try {
    require_room_for_pool(job(), kind_->sessions(), here);
  } catch (Error& e) {
    throw e.at(loaded_.source.place("supernode.pool"));
  }
  require_room_for_flash(job(), kind_->sessions(), here, directory);
}

void Run::prepare(const OnThisHost& here) {
  const fs::path directory = fs::absolute(expand_directory(job().run.directory, job().name, started_));
  require_room(here, directory);
  std::signal(SIGPIPE, [](int) {});  // not SIG_IGN, which mpirun would inherit
  try {
    kind_->read_inputs();
  } catch (const Error& e) {
    throw at_job_line(e, loaded_.source);
  }
  directory_ = RunDirectory::create(directory);
  if (!directory_->notice().empty()) std::printf("%s\n", directory_->notice().c_str());
  try {
    save_tokenizer(job(), kind_->tokenizer(), directory_->file("tokenizer.json"));
    kind_->enter(*directory_);
  } catch (const Error&) {  // the run has not begun, so its directory is removed
    std::error_code shown_by_the_error;
    fs::remove_all(directory_->path(), shown_by_the_error);
    throw;
  }
  directory_->write(kJobFile, to_textproto(loaded_.job));
  remove_stale_copies();
  if (job().run.copy_every > 0)
    copies_.emplace(copies_folder(directory_->path()), CopiesFolder::AtEnd::kRemove);
}

int Run::execute(const Starter& starter, Restarts restarts) {
  RunTimeline timeline(loaded_.job, fault_model_, bytes_of_checkpoint(kind_->sessions().front()));
  RecorderOutputs outputs{.directory = &*directory_, .quiet = arguments_.quiet, .timeline = &timeline};
  if (kind_->traces()) outputs.trace = directory_->file(kTraceFile);
  const std::unique_ptr<Recorder> recorder = kind_->make_recorder(std::move(outputs));
  kind_->announce();
  std::fflush(stdout);
  const RunSpec& run = loaded_.job.run;
  Chaos chaos(run.chaos, devices(), loaded_.job.training.steps, run.checkpoint_every > 0);
  chaos.follow(timeline);
  left_ = devices();
  Fleet fleet(loaded_.job.supernode, chaos, timeline, starter.survivors);
  control::Outcome outcome;
  std::unique_ptr<RunDriver> driver;  // the last one is asked for results at the end
  for (bool again = true; again;) {
    write_manifest(*recorder, nullptr);
    driver = kind_->make_driver([&](std::int64_t step) { return fleet.left(step) > left_; });
    Nanos failed{};
    driver->inject(chaos);
    driver->when_failed([&](const Error& cause) {
      failed = unix_time();
      timeline.lost(failed);
      if (!restarts.possible(cause.code(), driver->setback().diverged.has_value())) report(cause, *recorder);
    });
    outcome = starter.start(job(), *driver, chaos.of_start(job().supernode.devices));
    again = outcome.ok() && driver->paused();
    if (again) {
      go_on(fleet);
      continue;
    }
    const Setback setback = driver->setback();
    const bool diverged = setback.diverged.has_value();
    if (setback.trusted) remove_untrusted_checkpoints(*setback.trusted);
    if (outcome.ok() || !outcome.error || !restarts.possible(outcome.error->code(), diverged)) break;
    if (outcome.all_done && !driver->paused()) {
      std::fprintf(stderr, "all work was done when this happened: %s\n", outcome.error->cause().c_str());
      outcome.error.reset();
      break;
    }
    remove_unfinished_checkpoints(directory_->path() / "checkpoints");
    again = restarts.again(outcome, saved_step(last_checkpoint().value_or("")), diverged);
    if (again && diverged) kind_->leave_out_samples_of(*setback.diverged);
    if (again)
      again = go_on_after(outcome, failed, restarts, fleet, *recorder);
    else if (restarts.limit() > 0 && outcome.any_started)
      std::fprintf(stderr, "%s",
                   fmt::format("{} {} without a new checkpoint, and no further one\n", restarts.limit(),
                               restarts.limit() == 1 ? "restart" : "restarts")
                       .c_str());
    if (!again) report(*outcome.error, *recorder);
  }
  if (!outcome.ok()) remove_unfinished_checkpoints(directory_->path() / "checkpoints");
  recorder->finish();
  write_manifest(*recorder, &outcome);
  kind_->conclude(*directory_, outcome.all_done);
  if (outcome.all_done)
    std::printf("%s%srun directory: %s\n", describe(*recorder).c_str(), recorder->text().c_str(),
                directory_->path().c_str());
  std::fflush(stdout);
  if (outcome.signal != 0) std::fprintf(stderr, "%s\n", outcome.reason().c_str());
  if (!outcome.ok()) std::fprintf(stderr, "what the run left is in %s\n", directory_->path().c_str());
  return outcome.exit_status();
}

// Writes the results so far, and prints why the run ends.
void Run::report(const Error& cause, Recorder& recorder) const {
  report_failure(kind_->with_remedy(cause), [&] { recorder.finish(); });
}

// Has the next start begin behind the last checkpoint, or at the begin of the run, on the devices that are
// left. Returns the number of steps that are done.
std::int64_t Run::go_on(const Fleet& fleet) {
  fleet.await(loaded_.job.run.elastic);
  const std::optional<fs::path> checkpoint = last_checkpoint();
  const std::int64_t step = checkpoint ? std::max<std::int64_t>(0, saved_step(*checkpoint)) : 0;
  const std::int32_t left = fleet.left(step);
  if (left < left_ && !loaded_.job.run.elastic)
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
    kind_->change_to(left == devices() ? loaded_.job : best_layout(loaded_.job, left));
    std::fprintf(stderr, "%s\n",
                 fmt::format("{} of {} devices are there; the run goes on with {} ({})", left, devices(),
                             job().supernode.devices, describe_mesh(Mesh{job().parallel.mesh}))
                     .c_str());
  }
  return checkpoint ? kind_->go_on_from(*checkpoint) : kind_->first_step();
}

// The same after a loss, which it tells and records. False: the run cannot go on; `outcome` says why.
bool Run::go_on_after(control::Outcome& outcome, Nanos failed, const Restarts& restarts, Fleet& fleet,
                      Recorder& recorder) {
  const Error cause = *outcome.error;
  try {
    const std::string place = cause.place().empty() ? "" : cause.place() + ": ";
    std::fprintf(stderr, "%s%s: %s\n", place.c_str(), std::string(name(cause.code())).c_str(),
                 cause.cause().c_str());
    fleet.look(recorder.hosts());
    const std::int64_t from = go_on(fleet);
    recorder.go_on(cause, failed, from, kind_->left_out());
  } catch (const Error& e) {
    outcome.error = e;
    return false;
  }
  std::fprintf(stderr, "%s\n",
               fmt::format("restart {} of {} {}", restarts.in_a_row(), restarts.limit(),
                           describe(recorder.restarts().back()))
                   .c_str());
  return true;
}

// Removes what was saved or copied after the last comparison of the devices' state that has found nothing.
void Run::remove_untrusted_checkpoints(std::int64_t trusted) const {
  std::vector<fs::path> untrusted = checkpoints_after(directory_->path(), trusted);
  if (copies_)
    for (const fs::path& copy : checkpoints_after(copies_->path(), trusted)) untrusted.push_back(copy);
  for (const fs::path& checkpoint : untrusted) {
    std::fprintf(stderr, "removed %s: it may hold the corrupted state\n", checkpoint.c_str());
    fs::remove_all(checkpoint);
  }
}

// The newest, on the disk or in this host's memory.
std::optional<fs::path> Run::last_checkpoint() const {
  std::optional<fs::path> last;
  const auto look = [&last](const fs::path& folder) {
    const fs::path found = find_checkpoint(folder);
    if (found != folder && (!last || saved_step(found) > saved_step(*last))) last = found;
  };
  look(directory_->path());
  if (copies_) look(copies_->path());
  return last;
}

void Run::write_manifest(const Recorder& recorder, const control::Outcome* outcome) const {
  directory_->write(kManifestFile, to_json(manifest_of(job(), arguments_, recorder, started_, outcome)));
}

}  // namespace hyperrun

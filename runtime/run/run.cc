#include "runtime/run/run.h"

#include <fmt/core.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/run/device_use.h"
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
  return RunLoop({.arguments = arguments_,
                  .loaded = loaded_,
                  .fault_model = fault_model_,
                  .kind = *kind_,
                  .directory = *directory_,
                  .copies = copies_ ? copies_->path() : fs::path(),
                  .started = started_},
                 starter, restarts)
      .run();
}

}  // namespace hyperrun

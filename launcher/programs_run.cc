#include "launcher/programs_run.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "launcher/mpi_start.h"
#include "launcher/run_manifest.h"
#include "runtime/base/error.h"
#include "runtime/spec/job_writer.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

}  // namespace

ProgramsRun::ProgramsRun(const RunArguments& arguments, LoadedJob loaded)
    : arguments_(arguments), loaded_(std::move(loaded)), started_(unix_time()) {
  if (job().run.clock != kPaced || job().run.dilation > 0) return;
  throw Error(Code::kBadValue, "programs side by side have one dilation, which the job has to give")
      .at(loaded_.source.place("run.clock"))
      .legal("clock: \"paced\" with a dilation")
      .fix("add dilation: ... to run, so large that the real work fits");
}

void ProgramsRun::prepare(int local_ranks) {
  try {
    require_room_for_hbm(job(), local_ranks);
  } catch (Error& e) {
    throw e.at(loaded_.source.place("supernode.hbm"));
  }
  try {
    require_room_for_pool(job(), sessions(), local_ranks);
  } catch (Error& e) {
    throw e.at(loaded_.source.place("supernode.pool"));
  }
  const fs::path directory = fs::absolute(expand_directory(job().run.directory, job().name, started_));
  require_room_for_flash(job(), sessions(), local_ranks, directory);
  std::signal(SIGPIPE, [](int) {});  // a handler, as SIG_IGN would be handed on to mpirun
  directory_ = RunDirectory::create(directory);
  if (!directory_->notice().empty()) std::printf("%s\n", directory_->notice().c_str());
  write_tokenizer(tokenizer(), directory_->file("tokenizer.json"));
  settle_sessions(*directory_);
  directory_->write(kJobFile, to_textproto(job()));
}

int ProgramsRun::execute(const std::function<control::Outcome(tasks::Driver&)>& drive) {
  const Driven driven = this->driven(outputs_in(*directory_, arguments_.quiet));
  ProgramsRecorder& recorder = *driven.recorder;
  announce();
  std::fflush(stdout);
  write_manifest(recorder, nullptr);
  const control::Outcome outcome = drive(*driven.driver);
  recorder.finish();
  write_manifest(recorder, &outcome);
  if (outcome.all_done)
    std::printf("%srun directory: %s\n", recorder.text().c_str(), directory_->path().c_str());
  std::fflush(stdout);
  if (outcome.signal != 0) std::fprintf(stderr, "%s\n", outcome.reason().c_str());
  if (!outcome.ok()) std::fprintf(stderr, "what the run left is in %s\n", directory_->path().c_str());
  return outcome.exit_status();
}

void ProgramsRun::fill(ProgramsReport& report, std::int64_t parameters) const {
  report.job = job().name;
  report.parameters = parameters;
  report.devices = job().supernode.devices;
  report.clock = job().run.clock;
  report.dilation = job().run.dilation;
}

void ProgramsRun::write_manifest(const ProgramsRecorder& recorder, const control::Outcome* outcome) const {
  directory_->write(kManifestFile,
                    to_json(manifest_of(job(), arguments_, recorder.hosts(), started_, outcome)));
}

}  // namespace hyperrun

// A run of several programs that learns from rewards: everything that can be refused is refused before a rank
// starts.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "launcher/mpi_start.h"
#include "launcher/recorder.h"
#include "launcher/reinforcement_driver.h"
#include "launcher/reinforcement_inputs.h"
#include "launcher/resume.h"
#include "launcher/run.h"
#include "launcher/run_manifest.h"
#include "launcher/text_data.h"
#include "runtime/base/error.h"
#include "runtime/compile/programs.h"
#include "runtime/device/state_files.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/spec/job_writer.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

void require_dilation(const LoadedJob& loaded) {
  if (loaded.job.run.clock != kPaced || loaded.job.run.dilation > 0) return;
  throw Error(Code::kBadValue, "programs side by side have one dilation, which the job has to give")
      .at(loaded.source.place("run.clock"))
      .legal("clock: \"paced\" with a dilation")
      .fix("add dilation: ... to run, so large that the real work fits");
}

class ReinforcementRun : public Run {
 public:
  ReinforcementRun(const RunArguments& arguments, LoadedJob loaded)
      : arguments_(arguments),
        loaded_(std::move(loaded)),
        inputs_(read_inputs(loaded_)),
        started_(unix_time()) {
    require_dilation(loaded_);
    try {
      programs_ = sessions_of(job(), compile_programs(job()));
    } catch (const Error& e) {
      throw at_job_line(e, loaded_.source);
    }
    if (!job().run.resume.empty()) check_weights(programs_.sessions[programs_.trains].plan, job().run.resume);
  }

  const Job& job() const override { return loaded_.job; }

  void prepare(int local_ranks) override {
    try {
      require_room_for_hbm(job(), local_ranks);
    } catch (Error& e) {
      throw e.at(loaded_.source.place("supernode.hbm"));
    }
    try {
      require_room_for_pool(job(), programs_.sessions, local_ranks);
    } catch (Error& e) {
      throw e.at(loaded_.source.place("supernode.pool"));
    }
    std::signal(SIGPIPE, [](int) {});  // a handler, as SIG_IGN would be handed on to mpirun
    prepare_directory();
  }

  int execute(const std::function<control::Outcome(control::Driver&)>& drive) override {
    ReinforcementRecorder recorder(report(), *directory_, arguments_.quiet);
    ReinforcementDriver driver(job(), programs_, inputs_.tasks, inputs_.tokenizer, recorder);
    announce();
    write_manifest(recorder, nullptr);
    const control::Outcome outcome = drive(driver);
    recorder.finish();
    write_manifest(recorder, &outcome);
    if (outcome.all_done)
      std::printf("%srun directory: %s\n", to_text(recorder.report()).c_str(), directory_->path().c_str());
    std::fflush(stdout);
    if (outcome.signal != 0) std::fprintf(stderr, "%s\n", outcome.reason().c_str());
    if (!outcome.ok()) std::fprintf(stderr, "what the run left is in %s\n", directory_->path().c_str());
    return outcome.exit_status();
  }

 private:
  void prepare_directory() {
    directory_ =
        RunDirectory::create(fs::absolute(expand_directory(job().run.directory, job().name, started_)));
    if (!directory_->notice().empty()) std::printf("%s\n", directory_->notice().c_str());
    write_tokenizer(inputs_.tokenizer, directory_->file("tokenizer.json"));
    for (Session& session : programs_.sessions) session.run_directory = directory_->path();
    Session& learner = programs_.sessions[programs_.trains];
    learner.checkpoint_files = {
        {"config.json", to_config_json(checkpoint_config(learner.job, inputs_.tokenizer))},
        {"tokenizer.json", read_file(directory_->file("tokenizer.json"), Code::kBadCorpus)}};
    directory_->write(kJobFile, to_textproto(job()));
  }

  void write_manifest(const ReinforcementRecorder& recorder, const control::Outcome* outcome) const {
    directory_->write(kManifestFile,
                      to_json(manifest_of(job(), arguments_, recorder.hosts(), started_, outcome)));
  }

  ReinforcementReport report() const {
    ReinforcementReport r;
    r.job = job().name;
    r.parameters = parameters(programs_.sessions[programs_.trains].plan);
    r.devices = job().supernode.devices;
    r.clock = job().run.clock;
    r.dilation = job().run.dilation;
    return r;
  }

  void announce() const {
    std::printf("%s: %lld parameters, %zu tasks and %zu held back\n", job().name.c_str(),
                static_cast<long long>(parameters(programs_.sessions[programs_.trains].plan)),
                inputs_.tasks.train.size(), inputs_.tasks.held_back.size());
    for (const ProgramSpec& p : job().programs) {
      if (p.devices == 0) continue;
      const std::string mesh = mesh_text(Mesh{p.parallel.mesh});
      std::printf("  %-12s %-9s devices %d to %d%s\n", p.name.c_str(), p.does.c_str(), p.first_device,
                  p.first_device + p.devices - 1, mesh.empty() ? "" : (" (" + mesh + ")").c_str());
    }
    std::fflush(stdout);
  }

  const RunArguments& arguments_;
  LoadedJob loaded_;
  ReinforcementInputs inputs_;
  Nanos started_;
  ProgramSessions programs_;
  std::optional<RunDirectory> directory_;
};

}  // namespace

std::unique_ptr<Run> make_reinforcement_run(const RunArguments& arguments, LoadedJob loaded) {
  return std::make_unique<ReinforcementRun>(arguments, std::move(loaded));
}

}  // namespace hyperrun

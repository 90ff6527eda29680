// A run of programs with encoders: everything that can be refused is refused before a rank starts.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "launcher/mpi_start.h"
#include "launcher/omni_driver.h"
#include "launcher/omni_inputs.h"
#include "launcher/omni_recorder.h"
#include "launcher/recorder.h"
#include "launcher/run.h"
#include "launcher/run_manifest.h"
#include "runtime/base/error.h"
#include "runtime/compile/omni.h"
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

class OmniRun : public Run {
 public:
  OmniRun(const RunArguments& arguments, LoadedJob loaded)
      : arguments_(arguments), loaded_(std::move(loaded)), started_(unix_time()) {
    require_dilation(loaded_);
    if (!job().run.resume.empty())
      throw Error(Code::kBadValue, "a run of programs with encoders cannot go on from a checkpoint")
          .at("--resume")
          .legal("a run from its begin")
          .fix("leave --resume out");
    if (!arguments.hostfile.empty())
      throw Error(Code::kBadLayout, "programs with encoders fetch from each other's HBM, on one host")
          .at("--hostfile")
          .legal("a run on this host")
          .fix("leave --hostfile out");
    try {
      inputs_ = read_omni_inputs(loaded_);
      plan_ = compile_omni(job(), inputs_.most_items());
    } catch (const Error& e) {
      throw at_job_line(e, loaded_.source);
    }
    sessions_ = sessions_of(plan_, job());
  }

  const Job& job() const override { return loaded_.job; }

  void prepare(int local_ranks) override {
    try {
      require_room_for_hbm(job(), local_ranks);
    } catch (Error& e) {
      throw e.at(loaded_.source.place("supernode.hbm"));
    }
    try {
      require_room_for_pool(job(), sessions_, local_ranks);
    } catch (Error& e) {
      throw e.at(loaded_.source.place("supernode.pool"));
    }
    std::signal(SIGPIPE, [](int) {});  // a handler, as SIG_IGN would be handed on to mpirun
    directory_ =
        RunDirectory::create(fs::absolute(expand_directory(job().run.directory, job().name, started_)));
    if (!directory_->notice().empty()) std::printf("%s\n", directory_->notice().c_str());
    write_tokenizer(*inputs_.tokenizer, directory_->file("tokenizer.json"));
    for (Session& session : sessions_) {  // each has checkpoints of its own
      session.run_directory = (fs::path(directory_->path()) / session.name).string();
      if (&session != &sessions_.back()) fs::create_directories(session.run_directory);
    }
    directory_->write(kJobFile, to_textproto(job()));
  }

  int execute(const std::function<control::Outcome(control::Driver&)>& drive) override {
    OmniRecorder recorder(report(), *directory_, arguments_.quiet);
    OmniDriver driver(job(), plan_, sessions_, inputs_, recorder);
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
  void write_manifest(const OmniRecorder& recorder, const control::Outcome* outcome) const {
    directory_->write(kManifestFile,
                      to_json(manifest_of(job(), arguments_, recorder.hosts(), started_, outcome)));
  }

  std::int64_t parameters_of_all() const {
    std::int64_t sum = 0;
    for (std::size_t s = 0; s + 1 < sessions_.size(); ++s) sum += parameters(sessions_[s].plan);
    return sum;
  }

  OmniReport report() const {
    OmniReport r;
    r.job = job().name;
    r.parameters = parameters_of_all();
    r.devices = job().supernode.devices;
    r.order = job().media.order;
    r.clock = job().run.clock;
    r.dilation = job().run.dilation;
    return r;
  }

  void announce() const {
    std::printf("%s: %lld parameters, %zu samples and %zu held back\n", job().name.c_str(),
                static_cast<long long>(parameters_of_all()), inputs_.train->size(),
                inputs_.held_back->size());
    for (std::size_t s = 0; s + 1 < sessions_.size(); ++s) {
      const std::string mesh = mesh_text(sessions_[s].plan.mesh);
      std::printf("  %-12s devices %d to %d%s\n", sessions_[s].name.c_str(), sessions_[s].ranks.front(),
                  sessions_[s].ranks.back(), mesh.empty() ? "" : (" (" + mesh + ")").c_str());
    }
    std::fflush(stdout);
  }

  const RunArguments& arguments_;
  LoadedJob loaded_;
  Nanos started_;
  OmniInputs inputs_;
  OmniPlan plan_;
  std::vector<Session> sessions_;
  std::optional<RunDirectory> directory_;
};

}  // namespace

std::unique_ptr<Run> make_omni_run(const RunArguments& arguments, LoadedJob loaded) {
  return std::make_unique<OmniRun>(arguments, std::move(loaded));
}

}  // namespace hyperrun

// The kind of run of a job that learns from rewards.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/compose/programs.h"
#include "runtime/run/device_use.h"
#include "runtime/run/failure.h"
#include "runtime/run/programs.h"
#include "runtime/run/programs_state.h"
#include "runtime/run/reinforcement_driver.h"
#include "runtime/run/reinforcement_inputs.h"
#include "runtime/run/run_kind.h"
#include "runtime/run/saved_documents.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

class Reinforcement : public RunKind {
 public:
  explicit Reinforcement(const LoadedJob& loaded)
      : job_(loaded.job), inputs_(read_reinforcement_inputs(loaded)) {
    require_dilation(loaded);
    try {
      programs_ = sessions_of(job(), compile_programs(job()));
      print_warnings(warnings_of_learner(loaded));
      if (!job().run.resume.empty()) go_on_from(job().run.resume);
    } catch (const Error& e) {
      throw at_job_line(e, loaded.source);
    }
  }

  const Job& job() const override { return job_; }
  std::vector<Session>& sessions() override { return programs_.sessions; }
  const Tokenizer& tokenizer() const override { return inputs_.tokenizer; }

  std::int64_t go_on_from(const fs::path& checkpoint) override {
    job_.run.resume = checkpoint;
    state_ = check_learning_start(job_, learner().plan,
                                  programs_.scores ? &programs_.sessions[*programs_.scores].plan : nullptr,
                                  inputs_);
    learner().job.run.resume = checkpoint;
    if (programs_.scores) programs_.sessions[*programs_.scores].job.run.resume = checkpoint / kReferencePart;
    return first_step();
  }

  std::int64_t first_step() const override { return state_ ? state_->next_step : 0; }

  Error with_remedy(const Error& cause) const override {
    return recorder_->report().steps > 0 ? with_resume_remedy(cause, job(), learner().run_directory) : cause;
  }

  void enter(const RunDirectory& directory) override {
    for (Session& session : programs_.sessions) session.run_directory = directory.path();
    learner().checkpoint_files =
        checkpoint_documents(learner().job, inputs_.tokenizer, directory.file("tokenizer.json"));
  }

  std::unique_ptr<Recorder> make_recorder(RecorderOutputs outputs) override {
    ReinforcementReport report;
    describe(job(), parameters(learner().plan), report);
    auto recorder = std::make_unique<ReinforcementRecorder>(std::move(report), std::move(outputs));
    recorder_ = recorder.get();
    return recorder;
  }

  std::unique_ptr<RunDriver> make_driver(std::function<bool(std::int64_t)> /*pause*/) override {
    return std::make_unique<ReinforcementDriver>(job(), programs_, inputs_.tasks, inputs_.tokenizer,
                                                 *recorder_, state_);
  }

  void announce() const override {
    std::printf("%s: %lld parameters, %zu tasks and %zu held back\n", job().name.c_str(),
                static_cast<long long>(parameters(learner().plan)), inputs_.tasks.train.size(),
                inputs_.tasks.held_back.size());
    for (const ProgramSpec& p : job().programs) {
      if (p.devices == 0) continue;
      const std::string mesh = describe_mesh(Mesh{p.parallel.mesh});
      std::printf("  %-12s %-9s devices %d to %d%s\n", p.name.c_str(), p.does.c_str(), p.first_device,
                  p.first_device + p.devices - 1, mesh.empty() ? "" : (" (" + mesh + ")").c_str());
    }
    if (state_) std::printf("%s", describe_resumed(job(), *state_).c_str());
  }

 private:
  Session& learner() { return programs_.sessions[programs_.trains]; }
  const Session& learner() const { return programs_.sessions[programs_.trains]; }

  Job job_;
  std::optional<ProgramsState> state_;  // what the run goes on from; nullopt: it begins with weights
  ReinforcementInputs inputs_;
  ProgramSessions programs_;
  ReinforcementRecorder* recorder_ = nullptr;  // null before make_recorder()
};

}  // namespace

std::unique_ptr<RunKind> make_reinforcement(const LoadedJob& loaded) {
  return std::make_unique<Reinforcement>(loaded);
}

}  // namespace hyperrun

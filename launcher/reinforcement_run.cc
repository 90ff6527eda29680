// A run of several programs that learns from rewards.
#include <cstdio>
#include <utility>

#include "launcher/programs_run.h"
#include "launcher/recorder.h"
#include "launcher/reinforcement_driver.h"
#include "launcher/reinforcement_inputs.h"
#include "launcher/resume.h"
#include "launcher/text_data.h"
#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/compile/programs.h"
#include "runtime/device/state_files.h"
#include "runtime/model/checkpoint/files.h"

namespace hyperrun {
namespace {

class ReinforcementRun : public ProgramsRun {
 public:
  ReinforcementRun(const RunArguments& arguments, LoadedJob job)
      : ProgramsRun(arguments, std::move(job)), inputs_(read_inputs(loaded())) {
    try {
      programs_ = sessions_of(this->job(), compile_programs(this->job()));
      print_warnings(warnings_of_learner(loaded()));
    } catch (const Error& e) {
      throw at_job_line(e, loaded().source);
    }
    if (!this->job().run.resume.empty()) check_weights(learner().plan, this->job().run.resume);
  }

 private:
  Session& learner() { return programs_.sessions[programs_.trains]; }
  const Session& learner() const { return programs_.sessions[programs_.trains]; }

  std::vector<Session>& sessions() override { return programs_.sessions; }
  const Tokenizer& tokenizer() const override { return inputs_.tokenizer; }

  void settle_sessions(const RunDirectory& directory) override {
    for (Session& session : programs_.sessions) session.run_directory = directory.path();
    learner().checkpoint_files = {
        {"config.json", to_config_json(checkpoint_config(learner().job, inputs_.tokenizer))},
        {"tokenizer.json", read_file(directory.file("tokenizer.json"), Code::kBadCorpus)}};
  }

  Driven driven(RecorderOutputs outputs) override {
    ReinforcementReport report;
    fill(report, parameters(learner().plan));
    auto recorder = std::make_unique<ReinforcementRecorder>(std::move(report), std::move(outputs));
    auto driver =
        std::make_unique<ReinforcementDriver>(job(), programs_, inputs_.tasks, inputs_.tokenizer, *recorder);
    return {std::move(recorder), std::move(driver)};
  }

  void announce() const override {
    std::printf("%s: %lld parameters, %zu tasks and %zu held back\n", job().name.c_str(),
                static_cast<long long>(parameters(learner().plan)), inputs_.tasks.train.size(),
                inputs_.tasks.held_back.size());
    for (const ProgramSpec& p : job().programs) {
      if (p.devices == 0) continue;
      const std::string mesh = mesh_text(Mesh{p.parallel.mesh});
      std::printf("  %-12s %-9s devices %d to %d%s\n", p.name.c_str(), p.does.c_str(), p.first_device,
                  p.first_device + p.devices - 1, mesh.empty() ? "" : (" (" + mesh + ")").c_str());
    }
  }

  ReinforcementInputs inputs_;
  ProgramSessions programs_;
};

}  // namespace

std::unique_ptr<Run> make_reinforcement_run(const RunArguments& arguments, LoadedJob loaded) {
  return std::make_unique<ReinforcementRun>(arguments, std::move(loaded));
}

}  // namespace hyperrun

// A run of programs with encoders.
#include <cstdio>
#include <filesystem>
#include <utility>

#include "launcher/omni_driver.h"
#include "launcher/omni_inputs.h"
#include "launcher/omni_recorder.h"
#include "launcher/programs_run.h"
#include "launcher/recorder.h"
#include "runtime/base/error.h"
#include "runtime/compile/omni.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

class OmniRun : public ProgramsRun {
 public:
  OmniRun(const RunArguments& arguments, LoadedJob job) : ProgramsRun(arguments, std::move(job)) {
    if (!this->job().run.resume.empty())
      throw Error(Code::kBadValue, "a run of programs with encoders cannot go on from a checkpoint")
          .at("--resume")
          .legal("a run from its begin")
          .fix("leave --resume out");
    try {
      inputs_ = read_omni_inputs(loaded());
      plan_ = compile_omni(this->job(), inputs_.most_items());
    } catch (const Error& e) {
      throw at_job_line(e, loaded().source);
    }
    sessions_ = sessions_of(plan_, this->job());
  }

 private:
  std::vector<Session>& sessions() override { return sessions_; }
  const Tokenizer& tokenizer() const override { return *inputs_.tokenizer; }

  void settle_sessions(const RunDirectory& directory) override {
    for (Session& session : sessions_) {  // each has checkpoints of its own
      session.run_directory = (fs::path(directory.path()) / session.name).string();
      if (&session != &sessions_.back()) fs::create_directories(session.run_directory);
    }
  }

  Driven driven(RecorderOutputs outputs) override {
    OmniReport report;
    fill(report, parameters_of_all());
    report.order = job().media.order;
    auto recorder = std::make_unique<OmniRecorder>(std::move(report), std::move(outputs));
    auto driver = std::make_unique<OmniDriver>(job(), plan_, sessions_, inputs_, *recorder);
    return {std::move(recorder), std::move(driver)};
  }

  std::int64_t parameters_of_all() const {
    std::int64_t sum = 0;
    for (std::size_t s = 0; s + 1 < sessions_.size(); ++s) sum += parameters(sessions_[s].plan);
    return sum;
  }

  void announce() const override {
    std::printf("%s: %lld parameters, %zu samples and %zu held back\n", job().name.c_str(),
                static_cast<long long>(parameters_of_all()), inputs_.train->size(),
                inputs_.held_back->size());
    for (std::size_t s = 0; s + 1 < sessions_.size(); ++s) {
      const std::string mesh = mesh_text(sessions_[s].plan.mesh);
      std::printf("  %-12s devices %d to %d%s\n", sessions_[s].name.c_str(), sessions_[s].ranks.front(),
                  sessions_[s].ranks.back(), mesh.empty() ? "" : (" (" + mesh + ")").c_str());
    }
  }

  OmniInputs inputs_;
  OmniPlan plan_;
  std::vector<Session> sessions_;
};

}  // namespace

std::unique_ptr<Run> make_omni_run(const RunArguments& arguments, LoadedJob loaded) {
  return std::make_unique<OmniRun>(arguments, std::move(loaded));
}

}  // namespace hyperrun

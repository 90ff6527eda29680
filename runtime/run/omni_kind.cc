// The kind of run of a job with encoders.
#include <cstdio>
#include <filesystem>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compose/omni.h"
#include "runtime/run/device_use.h"
#include "runtime/run/omni_driver.h"
#include "runtime/run/omni_inputs.h"
#include "runtime/run/omni_recorder.h"
#include "runtime/run/programs.h"
#include "runtime/run/run_kind.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

class Omni : public RunKind {
 public:
  explicit Omni(const LoadedJob& loaded) : loaded_(loaded) {
    require_dilation(loaded);
    if (!job().run.resume.empty())
      throw Error(Code::kBadValue, "a run of programs with encoders cannot go on from a checkpoint")
          .at("--resume")
          .legal("a run from its begin")
          .fix("leave --resume out");
    try {
      inputs_ = read_omni_inputs(loaded);
      plan_ = compile_omni(job(), inputs_.most_items());
    } catch (const Error& e) {
      throw at_job_line(e, loaded.source);
    }
    sessions_ = sessions_of(plan_, job());
  }

  const Job& job() const override { return loaded_.job; }
  std::vector<Session>& sessions() override { return sessions_; }
  const Tokenizer& tokenizer() const override { return *inputs_.tokenizer; }

  // Each program but the exchange has a directory of its own for checkpoints.
  void enter(const RunDirectory& directory) override {
    for (Session& session : sessions_) {
      session.run_directory = (fs::path(directory.path()) / session.name).string();
      if (&session != &sessions_.back()) fs::create_directories(session.run_directory);
    }
  }

  std::unique_ptr<Recorder> make_recorder(RecorderOutputs outputs) override {
    OmniReport report;
    describe(job(), parameters_of_all(), report);
    report.order = job().media.order;
    auto recorder = std::make_unique<OmniRecorder>(std::move(report), std::move(outputs));
    recorder_ = recorder.get();
    return recorder;
  }

  std::unique_ptr<RunDriver> make_driver(std::function<bool(std::int64_t)> /*pause*/) override {
    return std::make_unique<OmniDriver>(job(), plan_, sessions_, inputs_, *recorder_);
  }

  std::int64_t go_on_from(const std::filesystem::path& checkpoint) override {
    throw Error(Code::kBadCheckpoint, "a run of several programs cannot go on from a checkpoint")
        .at(checkpoint.string());
  }

  void announce() const override {
    std::printf("%s: %lld parameters, %zu samples and %zu held back\n", job().name.c_str(),
                static_cast<long long>(parameters_of_all()), inputs_.train->size(),
                inputs_.held_back->size());
    for (std::size_t s = 0; s + 1 < sessions_.size(); ++s) {
      const std::string mesh = describe_mesh(sessions_[s].plan.mesh);
      std::printf("  %-12s devices %d to %d%s\n", sessions_[s].name.c_str(), sessions_[s].ranks.front(),
                  sessions_[s].ranks.back(), mesh.empty() ? "" : (" (" + mesh + ")").c_str());
    }
  }

 private:
  std::int64_t parameters_of_all() const {
    std::int64_t sum = 0;
    for (std::size_t s = 0; s + 1 < sessions_.size(); ++s) sum += parameters(sessions_[s].plan);
    return sum;
  }

  const LoadedJob& loaded_;
  OmniInputs inputs_;
  OmniPlan plan_;
  std::vector<Session> sessions_;
  OmniRecorder* recorder_ = nullptr;  // null before make_recorder()
};

}  // namespace

std::unique_ptr<RunKind> make_omni(const LoadedJob& loaded) { return std::make_unique<Omni>(loaded); }

}  // namespace hyperrun

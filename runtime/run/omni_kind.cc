// The kind of run of a job with encoders.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compose/omni.h"
#include "runtime/run/device_use.h"
#include "runtime/run/failure.h"
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
  explicit Omni(const LoadedJob& loaded) : job_(loaded.job) {
    require_dilation(loaded);
    try {
      inputs_ = read_omni_inputs(loaded);
      plan_ = compile_omni(job(), inputs_.most_items());
      sessions_ = sessions_of(plan_, job());
      if (!job().run.resume.empty()) go_on_from(job().run.resume);
    } catch (const Error& e) {
      throw at_job_line(e, loaded.source);
    }
  }

  const Job& job() const override { return job_; }
  std::vector<Session>& sessions() override { return sessions_; }
  const Tokenizer& tokenizer() const override { return *inputs_.tokenizer; }

  std::int64_t go_on_from(const fs::path& checkpoint) override {
    job_.run.resume = checkpoint;
    state_ = check_omni_start(job_, plan_);
    for (Session& session : sessions_) session.job.run.resume = checkpoint / session.name;
    return first_step();
  }

  std::int64_t first_step() const override { return state_ ? state_->next_step : 0; }

  Error with_remedy(const Error& cause) const override {
    return recorder_->report().steps > 0 ? with_resume_remedy(cause, job(), sessions_.front().run_directory)
                                         : cause;
  }

  void enter(const RunDirectory& directory) override {
    for (Session& session : sessions_) session.run_directory = directory.path();
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
    return std::make_unique<OmniDriver>(job(), plan_, sessions_, inputs_, *recorder_, state_);
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
    if (state_) std::printf("%s", describe_resumed(job(), *state_).c_str());
  }

 private:
  std::int64_t parameters_of_all() const {
    std::int64_t sum = 0;
    for (std::size_t s = 0; s + 1 < sessions_.size(); ++s) sum += parameters(sessions_[s].plan);
    return sum;
  }

  Job job_;
  std::optional<ProgramsState> state_;  // what the run goes on from; nullopt: it begins anew
  OmniInputs inputs_;
  OmniPlan plan_;
  std::vector<Session> sessions_;
  OmniRecorder* recorder_ = nullptr;  // null before make_recorder()
};

}  // namespace

std::unique_ptr<RunKind> make_omni(const LoadedJob& loaded) { return std::make_unique<Omni>(loaded); }

}  // namespace hyperrun

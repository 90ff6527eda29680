// The kind of run of a job without programs: a training, and the generation at its end.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/advise/fit.h"
#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/compile/compile.h"
#include "runtime/compose/shrink.h"
#include "runtime/ir/shrink.h"
#include "runtime/rank/token_file.h"
#include "runtime/run/device_use.h"
#include "runtime/run/failure.h"
#include "runtime/run/resume.h"
#include "runtime/run/run_kind.h"
#include "runtime/run/saved_documents.h"
#include "runtime/run/text_data.h"
#include "runtime/run/training_driver.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

// Describes the model whose instructions' durations a smaller model takes.
std::string describe_original(const Job& full) {
  const Job original = with_fewer_layers(full);
  const ModelSpec& m = original.model;
  return fmt::format("a {} of {} layers, hidden {}, {} x {} tokens", m.name, m.layers, m.hidden,
                     original.training.batch, m.sequence);
}

class Training : public RunKind {
 public:
  explicit Training(const LoadedJob& loaded) : loaded_(loaded), sessions_(1) {
    try {
      compile_job();
    } catch (const Error& e) {
      throw at_job_line(e, loaded_.source);
    }
  }

  // The small job, if the user's job is executed to scale.
  const Job& job() const override { return session().job; }
  std::vector<Session>& sessions() override { return sessions_; }
  const Tokenizer& tokenizer() const override { return text_->tokenizer; }
  bool traces() const override { return job().run.trace_steps > 0; }

  void read_inputs() override {
    text_ = prepare_text(job());
    session().prompt = encode_prompt(job(), text_->tokenizer);
  }

  void enter(const RunDirectory& directory) override {
    session().run_directory = directory.path();
    session().tokens = directory.file("tokens.bin");
    write_tokens(session().tokens, text_->tokens);
    text_->tokens = {};
    session().checkpoint_files =
        checkpoint_documents(job(), text_->tokenizer, directory.file("tokenizer.json"));
  }

  void announce() const override {
    const Job& j = job();
    const Plan& plan = session().plan;
    std::printf("%s", fmt::format("{}: {} parameters on {} devices ({})\n", j.name, parameters(plan),
                                  j.supernode.devices, describe_mesh(Mesh{j.parallel.mesh}))
                          .c_str());
    std::printf("%s", fmt::format("{} steps of {} x {} tokens, HBM {} of {} each\n", j.training.steps,
                                  j.training.batch, j.model.sequence, to_string(plan.peak()),
                                  to_string(j.supernode.hbm))
                          .c_str());
    if (session().original)
      std::printf("%s",
                  fmt::format("to scale: instructions last as long as those of {}, which takes {} of {}\n",
                              describe_original(loaded_.job), to_string(session().original->peak()),
                              to_string(loaded_.job.supernode.hbm))
                      .c_str());
    std::printf("%s", describe_corpus(j, *text_).c_str());
    if (!j.run.resume.empty()) std::printf("%s", describe_start(j, plan, first_).c_str());
  }

  std::unique_ptr<Recorder> make_recorder(RecorderOutputs outputs) override {
    auto recorder = std::make_unique<TrainingRecorder>(job(), session().plan, std::move(outputs));
    recorder_ = recorder.get();
    return recorder;
  }

  std::unique_ptr<RunDriver> make_driver(std::function<bool(std::int64_t)> pause) override {
    TrainingOptions options{.first_step = first_.step,
                            .weights_alone = first_.weights_alone,
                            .on_step = {},
                            .pause = std::move(pause)};
    auto driver = std::make_unique<TrainingDriver>(session(), *recorder_, std::move(options));
    driver_ = driver.get();
    return driver;
  }

  std::int64_t first_step() const override { return first_.step; }

  std::int64_t go_on_from(const fs::path& checkpoint) override {
    session().job.run.resume = checkpoint;
    check_checkpoint(job(), session().plan);
    begin_behind(resume_point(job(), session().plan));
    return first_.step;
  }

  void change_to(const Job& job) override {
    if (session().original) return RunKind::change_to(job);  // to scale of a step under the old layout
    Compiled compiled = compile(job);
    session().job = job;
    session().plan = std::move(compiled.plan);
    recorder_->change_layout();
  }

  void leave_out_samples_of(std::int64_t steps) override {
    least_sample_ = first_.sample + (steps - first_.step) * job().training.batch;
    begin_behind(asked_);
  }

  LeftOut left_out() const override { return {asked_.sample, first_.sample - asked_.sample}; }

  // Before the first step no work is lost, so no remedy for it is given.
  Error with_remedy(const Error& cause) const override {
    const bool has_learnt = first_.step > 0 || !recorder_->report().steps.empty();
    return has_learnt ? with_resume_remedy(cause, job(), session().run_directory) : cause;
  }

  void conclude(const RunDirectory& directory, bool all_done) override {
    fs::remove(session().tokens);
    if (!all_done || job().run.generate.tokens == 0) return;
    const std::string text = tokenizer().decode(driver_->generated());
    directory.write("generated.txt", text + "\n");
    std::printf("\n%s\n\n", valid_utf8(text).c_str());
  }

 private:
  void compile_job() {
    require_text(loaded_.job);
    session().job = loaded_.job;
    Compiled compiled = compile(job());
    session().plan = std::move(compiled.plan);
    print_warnings(warnings_of(loaded_, compiled.training));
    require_fit(loaded_, session().plan);
    if (loaded_.job.run.shrink != ShrinkSpec{}) {
      Scaled scaled = compile_to_scale(job(), session().plan.peak());
      session().job = std::move(scaled.job);
      session().plan = std::move(scaled.plan);
      session().original = std::move(scaled.original);
    }
    if (!job().run.resume.empty()) begin_behind(check_resume(job(), session().plan));
  }

  void begin_behind(const ResumePoint& point) {
    asked_ = first_ = point;
    first_.sample = std::max(point.sample, least_sample_);
    session().first_step = point.step;
    session().first_sample = first_.sample;
  }

  Session& session() { return sessions_.front(); }
  const Session& session() const { return sessions_.front(); }

  const LoadedJob& loaded_;
  std::vector<Session> sessions_;  // exactly one
  ResumePoint first_;              // where the run begins; 0 unless it resumes another
  ResumePoint asked_;              // the same, before samples were left out
  std::int64_t least_sample_ = 0;  // those before it are seen, or left out as a step on them has diverged
  std::optional<TextData> text_;
  TrainingRecorder* recorder_ = nullptr;    // null before make_recorder()
  const TrainingDriver* driver_ = nullptr;  // null before make_driver(); the last one
};

}  // namespace

std::unique_ptr<RunKind> make_training(const LoadedJob& loaded) { return std::make_unique<Training>(loaded); }

}  // namespace hyperrun

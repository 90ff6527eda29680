#include "runtime/run/training_driver.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/learning_rate.h"
#include "runtime/rank/protocol.h"
#include "runtime/run/results.h"

namespace hyperrun {

TrainingDriver::TrainingDriver(const Session& session, TrainingRecorder& recorder, TrainingOptions options)
    : SessionDriver(session, &recorder),
      recorder_(recorder),
      options_(std::move(options)),
      step_(options_.first_step),
      sound_steps_(options_.first_step),
      divergence_(session.job.run.divergence_jump),
      clean_(options_.first_step),
      saved_(options_.first_step),
      trusted_(options_.first_step),
      generated_(session.prompt) {
  for (const StepReport& s : recorder_.report().steps)
    if (s.loss && s.step <= options_.first_step) divergence_.remember(*s.loss);
  if (session.job.run.integrity.every > 0) comparison_.emplace(session.plan);
  if (session.job.run.clock == kPaced) paced_clock_.emplace(session, "train", options_.overhead);
}

std::optional<tasks::Invocation> TrainingDriver::next() {
  const std::int32_t steps = session().job.training.steps;
  switch (stage_) {
    case Stage::kInit: stage_ = after_init(); return tasks::Invocation{.program = program("init")};
    case Stage::kLoad:
      stage_ = step_ < steps ? Stage::kTrain : Stage::kGenerate;
      return tasks::Invocation{.program = options_.weights_alone ? kLoadWeightsProgram : kLoadProgram,
                               .step = step_};
    case Stage::kTrain:
      if (paced_clock_ && sound_steps_ < step_) return std::nullopt;
      return train();
    case Stage::kCompare:
      stage_ = after_comparison();
      return tasks::Invocation{.program = kCompareProgram, .step = step_};
    case Stage::kSave:
      if (sound_steps_ < step_ || (compares() && clean_ < step_)) return std::nullopt;
      after_saved_ = after_save();
      stage_ = compares() ? Stage::kCompareSaved : after_saved_;
      return save();
    case Stage::kCompareSaved:
      stage_ = after_saved_;
      return tasks::Invocation{.program = kCompareProgram, .step = step_};
    case Stage::kCopy:
      if (sound_steps_ < step_ || (compares() && clean_ < step_)) return std::nullopt;
      stage_ = Stage::kTrain;
      return tasks::Invocation{.program = kCopyProgram, .step = step_};
    case Stage::kPaused: return std::nullopt;
    case Stage::kGenerate: return generation_pass();
  }
  return std::nullopt;
}

tasks::Invocation TrainingDriver::train() {
  tasks::Invocation i{.program = program("train"), .step = step_};
  i.scalars[kLearningRate] = learning_rate(session().job.training, step_);
  if (traced(step_) || paced_clock_) i.scalars[kTraced] = std::int64_t{1};
  if (paced_clock_ && paced_clock_->dilation() > 0) i.scalars[kDilation] = paced_clock_->dilation();
  if (options_.on_step) options_.on_step(step_);
  ++step_;
  stage_ = after_step();
  return i;
}

// The last checkpoint is waited for, so that the run has it when it ends or generates.
tasks::Invocation TrainingDriver::save() const {
  tasks::Invocation i{.program = kSaveProgram, .step = step_};
  if (after_saved_ == Stage::kTrain) i.scalars[kBeside] = std::int64_t{1};
  return i;
}

void TrainingDriver::done(const tasks::Invocation& invocation,
                          std::span<const tasks::InvocationDone> results) {
  if (generation_ && generation_->is_pass(invocation)) {
    recorder_.ran(generation_->is_prefill(invocation) ? "prefill" : "decode", stats_of(results));
    for (const SampledToken& grown : generation_->done(results)) generated_.push_back(grown.token);
  } else if (invocation.program == program("init")) {
    recorder_.ran("init", stats_of(results));
  } else if (invocation.program == program("train")) {
    trained(invocation, results);
  } else if (invocation.program == kSaveProgram) {
    saved_ = invocation.step;
  } else if (invocation.program == kCompareProgram) {
    compared(invocation.step, results);
  }
}

void TrainingDriver::trained(const tasks::Invocation& invocation,
                             std::span<const tasks::InvocationDone> results) {
  const std::vector<InvocationStats> stats = stats_of(results);
  const double loss = output(results, "loss"), norm = output(results, "grad_norm");
  recorder_.step(invocation.step, loss, norm, stats, traced(invocation.step));
  if (paced_clock_) {
    paced_clock_->add(stats);
    recorder_.paced(paced_clock_->use());
  }
  setback_.diverged = invocation.step + 1;
  divergence_.require_sound(loss, norm, invocation.step + 1);
  setback_.diverged.reset();
  sound_steps_ = invocation.step + 1;
}

// A save whose result came before that of this comparison was issued before it.
void TrainingDriver::compared(std::int64_t step, std::span<const tasks::InvocationDone> results) {
  setback_.trusted = trusted_;
  comparison_->require_equal(results, step, clean_, recorder_.hosts());
  setback_.trusted.reset();
  clean_ = step;
  trusted_ = saved_;
}

std::optional<tasks::Invocation> TrainingDriver::generation_pass() {
  const std::int32_t tokens = session().job.run.generate.tokens;
  if (tokens > 0 && !generation_) {
    generation_.emplace(session().job, session().plan);
    generation_->add({0, session().prompt, tokens});
  }
  return generation_ ? generation_->next() : std::nullopt;
}

bool TrainingDriver::traced(std::int64_t step) const {
  const RunSpec& run = session().job.run;
  return step >= run.trace_first && step < run.trace_first + run.trace_steps;
}

TrainingDriver::Stage TrainingDriver::after_init() const {
  if (!session().job.run.resume.empty()) return Stage::kLoad;
  return step_ < session().job.training.steps ? Stage::kTrain : Stage::kSave;
}

TrainingDriver::Stage TrainingDriver::after_step() const {
  const Stage next = after_comparison();
  if (!compares()) return next;
  const bool keeps = next == Stage::kSave || next == Stage::kCopy;
  return keeps || step_ % session().job.run.integrity.every == 0 ? Stage::kCompare : next;
}

TrainingDriver::Stage TrainingDriver::after_save() const {
  if (step_ >= session().job.training.steps) return Stage::kGenerate;
  return options_.pause && options_.pause(step_) ? Stage::kPaused : Stage::kTrain;
}

// The stage after a step if no comparison comes between.
TrainingDriver::Stage TrainingDriver::after_comparison() const {
  const auto due = [this](std::int32_t every) { return every > 0 && step_ % every == 0; };
  const RunSpec& run = session().job.run;
  const bool last = step_ == session().job.training.steps;
  if (!options_.keeps_results) return last ? Stage::kGenerate : Stage::kTrain;
  if (last || due(run.checkpoint_every)) return Stage::kSave;
  return due(run.copy_every) ? Stage::kCopy : Stage::kTrain;
}

}  // namespace hyperrun

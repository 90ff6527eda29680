#include "launcher/training_driver.h"

#include <cmath>

#include "launcher/failure.h"
#include "launcher/protocol.h"
#include "launcher/results.h"
#include "runtime/base/error.h"
#include "runtime/compile/schedule.h"

namespace hyperrun {
namespace {

// Without the sign of a nan, which says nothing.
std::string text(double v) { return std::isnan(v) ? "nan" : std::to_string(v); }

}  // namespace

TrainingDriver::TrainingDriver(const Session& session, std::int64_t first_step, Recorder& recorder)
    : session_(session),
      recorder_(recorder),
      step_(first_step),
      sound_steps_(first_step),
      generated_(session.prompt) {
  if (session.job.run.clock == kPaced) pacing_.emplace(session, "train");
}

std::vector<tasks::Driver::Assignment> TrainingDriver::on_ready(
    const std::vector<tasks::DeviceInfo>& devices) {
  recorder_.begin(devices);
  return {{{0, "session", to_bytes(std::span(&session_, 1))}, {}}};
}

std::optional<tasks::Invocation> TrainingDriver::next_invocation() {
  const Job& job = session_.job;
  switch (stage_) {
    case Stage::kInit:
      stage_ = job.run.resume.empty() ? Stage::kTrain : Stage::kLoad;
      if (stage_ == Stage::kTrain) stage_ = step_ < job.training.steps ? Stage::kTrain : Stage::kSave;
      return invocation(program("init"), 0);
    case Stage::kLoad:
      stage_ = step_ < job.training.steps ? Stage::kTrain : Stage::kGenerate;
      return invocation(kLoadProgram, step_);
    case Stage::kTrain: {
      if (pacing_ && sound_steps_ < step_) return std::nullopt;
      tasks::Invocation i = invocation(program("train"), step_);
      i.scalars[kLearningRate] = learning_rate(job.training, step_);
      if (traced(step_) || pacing_) i.scalars[kTraced] = std::int64_t{1};
      if (pacing_ && pacing_->dilation() > 0) i.scalars[kDilation] = pacing_->dilation();
      ++step_;
      stage_ = after_step();
      return i;
    }
    case Stage::kSave:
      if (sound_steps_ < step_) return std::nullopt;
      stage_ = step_ < job.training.steps ? Stage::kTrain : Stage::kGenerate;
      return invocation(kSaveProgram, step_);
    case Stage::kGenerate: return generation_pass();
  }
  return std::nullopt;
}

void TrainingDriver::on_done(const tasks::Invocation& invocation,
                             std::span<const tasks::InvocationDone> results) {
  if (generation_ && generation_->is_pass(invocation)) {
    const std::size_t number = static_cast<std::size_t>(invocation.program);
    recorder_.ran(session_.plan.roles[0].programs[number].name, stats_of(results));
    for (const Grown& grown : generation_->done(results)) generated_.push_back(grown.token);
    return;
  }
  if (is(invocation, "init")) recorder_.ran("init", stats_of(results));
  if (!is(invocation, "train")) return;
  const std::vector<InvocationStats> stats = stats_of(results);
  const double loss = output(results, "loss"), norm = output(results, "grad_norm");
  recorder_.step(invocation.step, loss, norm, stats, traced(invocation.step));
  if (pacing_) {
    pacing_->add(stats);
    recorder_.paced(pacing_->use());
  }
  if (!std::isfinite(loss) || !std::isfinite(norm))
    throw Error(Code::kNotFinite, "the loss is " + text(loss) + ", the gradient norm is " + text(norm))
        .at("step " + std::to_string(invocation.step + 1))
        .fix("lower training.lr, lengthen training.warmup_steps or lower training.clip_norm");
  sound_steps_ = invocation.step + 1;
}

void TrainingDriver::on_failed(const Error& cause) {
  // Before the first step nothing is lost that one could go on from.
  const bool has_learnt = sound_steps_ > 0;
  tell_failure(has_learnt ? with_way_on(cause, session_.job, session_.run_directory) : cause,
               [&] { recorder_.finish(); });
}

tasks::Invocation TrainingDriver::invocation(std::int32_t program, std::int64_t step) {
  tasks::Invocation i;
  i.id = issued_++;
  i.program = program;
  i.step = step;
  return i;
}

std::optional<tasks::Invocation> TrainingDriver::generation_pass() {
  const std::int32_t tokens = session_.job.run.generate.tokens;
  if (tokens > 0 && !generation_) {
    generation_.emplace(session_.job, session_.plan);
    generation_->add({0, session_.prompt, tokens});
  }
  std::optional<tasks::Invocation> pass = generation_ ? generation_->next() : std::nullopt;
  if (pass) pass->id = issued_++;
  return pass;
}

std::int32_t TrainingDriver::program(std::string_view name) const {
  return static_cast<std::int32_t>(session_.plan.program_index(name));
}

bool TrainingDriver::is(const tasks::Invocation& invocation, std::string_view name) const {
  return invocation.program < kSaveProgram &&
         session_.plan.roles[0].programs[static_cast<std::size_t>(invocation.program)].name == name;
}

bool TrainingDriver::traced(std::int64_t step) const {
  const RunSpec& run = session_.job.run;
  return step >= run.trace_first && step < run.trace_first + run.trace_steps;
}

TrainingDriver::Stage TrainingDriver::after_step() const {
  const std::int32_t every = session_.job.run.checkpoint_every;
  const bool last = step_ == session_.job.training.steps;
  return last || (every > 0 && step_ % every == 0) ? Stage::kSave : Stage::kTrain;
}

}  // namespace hyperrun

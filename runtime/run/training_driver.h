// The driver of a training. It issues invocations in this order:
//
//   init, (load), train step by step with saves between, save, (prefill, decode token by token)
//
// With run.integrity.every, the devices compare their state after each so many steps, and before and after
// each save: a save waits for the first comparison, and the second tells that what was saved can be trusted.
//
// The order does not depend on results, so invocations are issued as fast as the devices take them. But a
// save waits for the results of the steps before it, so that a diverged state is never saved. It is done once
// the state is copied, except for the last, which is done once it is written. On the paced
// clock every step waits for the one before, because each step is measured separately.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/run/divergence.h"
#include "runtime/run/generation.h"
#include "runtime/run/paced_clock.h"
#include "runtime/run/session_driver.h"
#include "runtime/run/state_comparison.h"
#include "runtime/run/training_recorder.h"

namespace hyperrun {

struct TrainingOptions {
  std::int64_t first_step = 0;  // number of steps that a resumed run has done already
  bool weights_alone = false;   // it loads the weights of the checkpoint, and not its moments
  double overhead = 0.01;       // allowed overhead of a paced step; see PacedClock
  // False: writes no checkpoint.
  bool keeps_results = true;
  std::function<void(std::int64_t step)> on_step;  // called before each step is issued
  // Asked after each checkpoint on the way. True: the run ends there for now.
  std::function<bool(std::int64_t step)> pause;
};

class TrainingDriver : public SessionDriver {
 public:
  TrainingDriver(const Session& session, TrainingRecorder& recorder, TrainingOptions options = {});

  // Whether it ended behind a checkpoint with steps left to do.
  bool paused() const override { return stage_ == Stage::kPaused; }

  // The first sequence of the generation, the prompt included.
  const std::vector<std::int32_t>& generated() const { return generated_; }

  Setback setback() const override { return setback_; }

 protected:
  std::optional<tasks::Invocation> next() override;
  void done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results) override;

 private:
  enum class Stage { kInit, kLoad, kTrain, kCompare, kSave, kCompareSaved, kCopy, kGenerate, kPaused };

  tasks::Invocation train();
  tasks::Invocation save() const;
  void trained(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results);
  void compared(std::int64_t step, std::span<const tasks::InvocationDone> results);
  std::optional<tasks::Invocation> generation_pass();
  bool traced(std::int64_t step) const;
  Stage after_init() const;
  Stage after_step() const;
  Stage after_comparison() const;
  Stage after_save() const;
  bool compares() const { return comparison_.has_value(); }

  TrainingRecorder& recorder_;
  TrainingOptions options_;
  std::optional<PacedClock> paced_clock_;
  Stage stage_ = Stage::kInit;
  Stage after_saved_ = Stage::kTrain;  // what follows the save that was issued last
  std::int64_t step_;                  // the next step to issue
  std::int64_t sound_steps_;           // number of steps with finite results
  Divergence divergence_;
  std::optional<StateComparison> comparison_;  // nullopt: nothing is compared
  std::int64_t clean_, saved_;  // number of steps at the last clean comparison, at the last save
  std::int64_t trusted_;        // at the last save before a clean comparison
  Setback setback_;
  std::optional<Generation> generation_;
  std::vector<std::int32_t> generated_;
};

}  // namespace hyperrun

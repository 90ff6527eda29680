// The order of a training:
//
//   init, (load), train step by step with saves between, save, (prefill, decode token by token)
//
// Everything is known ahead but the results, so invocations go out as fast as the devices take them. A save
// waits for the results of the steps before it: a state that has diverged is not written down. On the paced
// clock every step waits for the one before, as each is measured by itself.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/run/generation.h"
#include "runtime/run/pacing.h"
#include "runtime/run/session_driver.h"
#include "runtime/run/training_recorder.h"

namespace hyperrun {

struct TrainingOptions {
  std::int64_t first_step = 0;  // steps that a resumed run has behind it
  double overhead = 0.01;       // that a paced step may have; see Pacing
  // False: no checkpoint is written, and a failure is the caller's to tell.
  bool keeps_results = true;
  std::function<void(std::int64_t step)> on_step;  // called before each step is issued
};

class TrainingDriver : public SessionDriver {
 public:
  TrainingDriver(const Session& session, TrainingRecorder& recorder, TrainingOptions options = {});

  void on_failed(const Error& cause) override;

  // The first sequence of the generation, the prompt included.
  const std::vector<std::int32_t>& generated() const { return generated_; }

 protected:
  std::optional<tasks::Invocation> next() override;
  void done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results) override;

 private:
  enum class Stage { kInit, kLoad, kTrain, kSave, kGenerate };

  tasks::Invocation train();
  void trained(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results);
  std::optional<tasks::Invocation> generation_pass();
  bool traced(std::int64_t step) const;
  Stage after_init() const;
  Stage after_step() const;

  TrainingRecorder& recorder_;
  TrainingOptions options_;
  std::optional<Pacing> pacing_;
  Stage stage_ = Stage::kInit;
  std::int64_t step_;         // to be issued next
  std::int64_t sound_steps_;  // whose results have come and are finite
  std::optional<Generation> generation_;
  std::vector<std::int32_t> generated_;
};

}  // namespace hyperrun

// The order of a run, as the controller asks for it:
//
//   init, (load), train step by step with saves between, save, (prefill, decode token by token)
//
// Everything is known ahead but the results, so invocations go out as fast as the window allows. Only a save
// waits for the results of the steps before it: what has diverged is not written down. So does every step on
// the paced clock: each is measured by itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/generation.h"
#include "launcher/pacing.h"
#include "launcher/recorder.h"
#include "runtime/control/controller.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

class TrainingDriver : public tasks::Driver {
 public:
  // first_step: steps that are done already (a resumed run).
  TrainingDriver(const Session& session, std::int64_t first_step, Recorder& recorder);

  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>& devices) override;
  std::optional<tasks::Invocation> next_invocation() override;
  void on_done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results) override;

  void on_failed(const Error& cause) override;

  // What the first sequence of the generation became, the prompt included.
  const std::vector<std::int32_t>& generated() const { return generated_; }

 private:
  enum class Stage { kInit, kLoad, kTrain, kSave, kGenerate };

  tasks::Invocation invocation(std::int32_t program, std::int64_t step);
  std::optional<tasks::Invocation> generation_pass();
  std::int32_t program(std::string_view name) const;
  bool is(const tasks::Invocation& invocation, std::string_view name) const;
  bool traced(std::int64_t step) const;
  Stage after_step() const;

  const Session& session_;
  Recorder& recorder_;
  std::optional<Pacing> pacing_;
  Stage stage_ = Stage::kInit;
  std::int64_t step_, issued_ = 0;
  std::int64_t sound_steps_;  // whose results have come and are finite
  std::optional<Generation> generation_;
  std::vector<std::int32_t> generated_;
};

}  // namespace hyperrun

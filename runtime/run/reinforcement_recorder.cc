#include "runtime/run/reinforcement_recorder.h"

#include <fmt/core.h>

#include <utility>

namespace hyperrun {
namespace {

constexpr std::string_view kRewardFile = "reward.svg";

}  // namespace

ReinforcementRecorder::ReinforcementRecorder(ReinforcementReport report, RecorderOutputs outputs)
    : ProgramsRecorder(std::move(outputs)), report_(std::move(report)) {}

void ReinforcementRecorder::decoded(std::int64_t filled, std::int64_t slots) {
  filled_ += static_cast<double>(filled) / static_cast<double>(slots);
  ++report_.decode_passes;
}

void ReinforcementRecorder::learned(std::int64_t completions, std::int64_t tokens) {
  report_.learned_completions += completions;
  report_.learned_tokens += tokens;
}

void ReinforcementRecorder::step(ReinforcementMetrics m) {
  m.time = last_end();
  m.step_time = end_step(m.reward);
  write(to_json_line(m));
  print(fmt::format("step {}: reward {:.3f}, {:.1f} % correct, {:.1f} tokens, kl {:.4f}, {} behind, {:.2f} s",
                    m.step, m.reward, 100 * m.correct, m.length, m.kl, m.staleness,
                    static_cast<double>(m.step_time.value) / 1e9));
}

void ReinforcementRecorder::evaluation(EvaluationMetrics m) {
  m.time = now();
  write(to_json_line(m));
  report_.evaluations.push_back(m);
  print(fmt::format("after {} steps: reward {:.3f} on tasks held back, {:.1f} % correct", m.step, m.reward,
                    100 * m.correct));
}

void ReinforcementRecorder::summarise() {
  ProgramsRecorder::summarise();
  if (report_.decode_passes > 0) report_.filled_slots = filled_ / static_cast<double>(report_.decode_passes);
}

Recorder::Chart ReinforcementRecorder::chart() const {
  return {kRewardFile, {report_.job, "reward of each step's completions", points(), "reward"}};
}

}  // namespace hyperrun

#include "launcher/reinforcement_recorder.h"

#include <utility>

#include "runtime/base/format.h"

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
  print(format("step %lld: reward %.3f, %.1f %% correct, %.1f tokens, kl %.4f, %lld behind, %.2f s",
               static_cast<long long>(m.step), m.reward, 100 * m.correct, m.length, m.kl,
               static_cast<long long>(m.staleness), static_cast<double>(m.step_time.value) / 1e9));
}

void ReinforcementRecorder::evaluation(EvaluationMetrics m) {
  m.time = now();
  write(to_json_line(m));
  report_.evaluations.push_back(m);
  print(format("after %lld steps: reward %.3f on tasks held back, %.1f %% correct",
               static_cast<long long>(m.step), m.reward, 100 * m.correct));
}

void ReinforcementRecorder::summarise() {
  if (report_.decode_passes > 0) report_.filled_slots = filled_ / static_cast<double>(report_.decode_passes);
}

ProgramsRecorder::Chart ReinforcementRecorder::chart() const {
  return {kRewardFile, {report_.job, "reward of each step's completions", {}, "reward"}};
}

}  // namespace hyperrun

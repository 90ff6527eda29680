#include "launcher/omni_recorder.h"

#include <utility>

#include "runtime/base/format.h"

namespace hyperrun {

OmniRecorder::OmniRecorder(OmniReport report, RecorderOutputs outputs)
    : ProgramsRecorder(std::move(outputs)), report_(std::move(report)) {}

void OmniRecorder::step(OmniMetrics m) {
  m.time = last_end();
  m.step_time = end_step(m.loss);
  write(to_json_line(m));
  const double seconds = static_cast<double>(m.step_time.value) / 1e9;
  report_.step_seconds.push_back(seconds);
  std::string items;
  for (const std::int64_t n : m.items) items += (items.empty() ? "" : " and ") + std::to_string(n);
  print(format("step %lld: loss %.4f, grad_norm %.3f, %s items, %.3f s", static_cast<long long>(m.step),
               m.loss, m.grad_norm, items.c_str(), seconds));
}

void OmniRecorder::evaluation(OmniEvaluation e) {
  e.time = now();
  write(to_json_line(e));
  report_.evaluations.push_back(e);
  print(describe(e));
}

ProgramsRecorder::Chart OmniRecorder::chart() const {
  return {kLossFile, {report_.job, "mean of the tokens that a step was to tell", {}}};
}

}  // namespace hyperrun

#include "runtime/run/omni_recorder.h"

#include <fmt/core.h>

#include <utility>

#include "runtime/base/joined.h"

namespace hyperrun {

OmniRecorder::OmniRecorder(OmniReport report, RecorderOutputs outputs)
    : ProgramsRecorder(std::move(outputs)), report_(std::move(report)) {}

void OmniRecorder::step(OmniMetrics m) {
  m.time = last_end();
  m.step_time = end_step(m.loss);
  write(to_json_line(m));
  const double seconds = static_cast<double>(m.step_time.value) / 1e9;
  report_.step_seconds.push_back(seconds);
  print(fmt::format("step {}: loss {:.4f}, grad_norm {:.3f}, {} items, {:.3f} s", m.step, m.loss, m.grad_norm,
                    joined(m.items, " and "), seconds));
}

void OmniRecorder::evaluation(OmniEvaluation e) {
  e.time = now();
  write(to_json_line(e));
  report_.evaluations.push_back(e);
  print(describe(e));
}

Recorder::Chart OmniRecorder::chart() const {
  return {kLossFile, {report_.job, "mean of the tokens that a step was to tell", points()}};
}

}  // namespace hyperrun

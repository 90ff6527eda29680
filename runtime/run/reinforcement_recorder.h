// The recorder of a run that learns from rewards.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/report/reinforcement.h"
#include "runtime/run/programs_recorder.h"

namespace hyperrun {

class ReinforcementRecorder : public ProgramsRecorder {
 public:
  // `report` has the facts about the job that are known before it runs.
  ReinforcementRecorder(ReinforcementReport report, RecorderOutputs outputs);

  // Record a step and an evaluation, and fill in their times.
  void step(ReinforcementMetrics metrics);
  void evaluation(EvaluationMetrics metrics);
  // Records a decode pass that filled `filled` of `slots` slots.
  void decoded(std::int64_t filled, std::int64_t slots);
  void learned(std::int64_t completions, std::int64_t tokens);
  void generated(std::int64_t tokens) { report_.generated_tokens += tokens; }

  const ReinforcementReport& report() const { return report_; }
  std::string text() const override { return to_text(report_); }

 private:
  ProgramsReport& common() override { return report_; }
  Chart chart() const override;
  std::string report_json() const override { return to_json(report_); }
  void summarise() override;

  ReinforcementReport report_;
  double filled_ = 0;  // share of filled slots, summed over passes
};

}  // namespace hyperrun

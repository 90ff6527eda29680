// The recorder of a run of programs with encoders.
#pragma once

#include <string>

#include "runtime/report/omni.h"
#include "runtime/run/programs_recorder.h"

namespace hyperrun {

class OmniRecorder : public ProgramsRecorder {
 public:
  // `report` has the facts about the job that are known before it runs.
  OmniRecorder(OmniReport report, RecorderOutputs outputs);

  // Record a step and an evaluation, and fill in their times.
  void step(OmniMetrics metrics);
  void evaluation(OmniEvaluation evaluation);

  const OmniReport& report() const { return report_; }
  std::string text() const override { return to_text(report_); }

 private:
  ProgramsReport& common() override { return report_; }
  Chart chart() const override;
  std::string report_json() const override { return to_json(report_); }

  OmniReport report_;
};

}  // namespace hyperrun

// What a run of programs with encoders reports.
#pragma once

#include <string>

#include "runtime/report/omni.h"
#include "runtime/run/programs_recorder.h"

namespace hyperrun {

class OmniRecorder : public ProgramsRecorder {
 public:
  // `report`: what is known of the job before it runs.
  OmniRecorder(OmniReport report, RecorderOutputs outputs);

  // Times are filled in.
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

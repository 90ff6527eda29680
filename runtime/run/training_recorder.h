// The recorder of a training: a line of metrics and of progress for each step, the trace of some steps, and a
// report with the use of each device.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"
#include "runtime/report/progress.h"
#include "runtime/report/report.h"
#include "runtime/run/recorder.h"

namespace hyperrun {

class TrainingRecorder : public Recorder {
 public:
  // `job` and `plan` must outlive the recorder.
  TrainingRecorder(const Job& job, const Plan& plan, RecorderOutputs outputs);

  // Records a step; `stats` are by device.
  void step(std::int64_t step, double loss, double grad_norm, std::span<const InvocationStats> stats,
            bool traced);
  // Records a Program outside of steps ("init", "prefill", "decode"). Only its memory goes to the report.
  void ran(const std::string& program, std::span<const InvocationStats> stats);
  // Begins the use of devices anew, as the plan has changed.
  void change_layout();
  void paced(const PacedUse& use);

  const RunReport& report() const { return report_; }
  std::string text() const override { return to_text(report_); }

 private:
  void begin_device(const tasks::DeviceInfo& device) override;
  std::int64_t steps_done() const override;
  void forget_steps_after(std::int64_t step) override;
  void summarise() override;
  std::string report_json() const override { return to_json(report_); }
  Chart chart() const override;

  Nanos step_time(std::int64_t begin, std::int64_t end);
  void plan_for(const std::string& program);
  void add_to_report(std::int64_t step, double loss, double grad_norm, std::span<const InvocationStats> stats,
                     Nanos time);
  void add_to_trace(std::int64_t step, std::span<const InvocationStats> stats);

  const Job& job_;
  const Plan& plan_;
  std::optional<ProgressLine> progress_;
  RunReport report_;
  std::set<std::string> programs_;  // Programs that have run
  std::int64_t start_ = 0;          // begin of the first step, Unix time, ns
  std::int64_t last_end_ = 0;       // end of the last step since the devices started, Unix time, ns
};

}  // namespace hyperrun

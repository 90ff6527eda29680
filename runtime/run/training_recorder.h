// What a training reports: a line of metrics and of progress for each step, the trace of some, and in the
// report what each device used.
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
  // `job` and `plan` outlive it.
  TrainingRecorder(const Job& job, const Plan& plan, RecorderOutputs outputs);

  // A step is done; `stats` by device.
  void step(std::int64_t step, double loss, double grad_norm, std::span<const InvocationStats> stats,
            bool traced);
  // A Program ran outside of steps ("init", "prefill", "decode"): the report has its memory.
  void ran(const std::string& program, std::span<const InvocationStats> stats);
  void paced(const PacedUse& use) { report_.paced = use; }

  const RunReport& report() const { return report_; }
  std::string text() const override { return to_text(report_); }

 private:
  void begin_device(const tasks::DeviceInfo& device) override;
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
  std::set<std::string> programs_;         // that have run
  std::int64_t start_ = 0, last_end_ = 0;  // of the first and of the last step, Unix time, ns
};

}  // namespace hyperrun

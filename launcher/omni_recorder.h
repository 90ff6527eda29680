// Writes down what a run of programs with encoders reports: metrics and progress as they come, trace and
// report at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/control/messages.h"
#include "runtime/report/omni.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/trace.h"

namespace hyperrun {

class OmniRecorder {
 public:
  // `report`: what is known of the job before it runs. Quiet: no lines of progress.
  OmniRecorder(OmniReport report, const RunDirectory& directory, bool quiet);

  void begin(const std::vector<control::DeviceInfo>& devices);
  // A task on `ranks`, in their order. `of_a_step`: or of an evaluation, which does not count as use.
  void ran(const std::string& program, const std::string& title, std::span<const std::int32_t> ranks,
           std::span<const control::InvocationDone> results, bool of_a_step);
  // Times are filled in.
  void step(OmniMetrics metrics);
  void evaluation(OmniEvaluation evaluation);
  // What follows is no part of the steps' time, until one has ended again.
  void pause() { paused_ = true; }

  // Writes report.json and loss.svg, closes the trace. Also after a failure, with what there is.
  void finish();

  const OmniReport& report() const { return report_; }
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  void count(const std::string& program, std::size_t devices, double seconds);

  OmniReport report_;
  const RunDirectory& directory_;
  bool quiet_;
  LineWriter metrics_;
  std::unique_ptr<TraceWriter> trace_;
  std::vector<std::string> hosts_;
  std::vector<double> losses_;  // by step
  std::vector<bool> used_;      // by rank
  std::int64_t start_ = 0;      // Unix time, ns: of the trace,
  std::int64_t first_ = 0,
               last_ = 0;  // of the first task's begin, of the last one's end since the last pause
  double running_ = 0;     // seconds of steps before the last pause
  Nanos step_ended_{};
  bool paused_ = true;
  double busy_ = 0;  // device seconds of steps
  bool finished_ = false;
};

}  // namespace hyperrun

// Writes down what a run that learns from rewards reports: metrics and progress as they come, trace and
// report at the end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/control/messages.h"
#include "runtime/report/reinforcement.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/trace.h"

namespace hyperrun {

class ReinforcementRecorder {
 public:
  // `report`: what is known of the job before it runs. Quiet: no lines of progress.
  ReinforcementRecorder(ReinforcementReport report, const RunDirectory& directory, bool quiet);

  void begin(const std::vector<control::DeviceInfo>& devices);
  // A run of a program on `ranks`, in their order.
  void ran(const std::string& program, const std::string& title, std::span<const std::int32_t> ranks,
           std::span<const control::InvocationDone> results);
  // Times are filled in.
  void step(ReinforcementMetrics metrics);
  void evaluation(EvaluationMetrics metrics);
  // A pass of decode in which `filled` of `slots` sequences grew.
  void decoded(std::int64_t filled, std::int64_t slots);
  void learned(std::int64_t completions, std::int64_t tokens);
  void generated(std::int64_t tokens) { report_.generated_tokens += tokens; }

  // Writes report.json and reward.svg, closes the trace. Also after a failure, with what there is.
  void finish();

  const ReinforcementReport& report() const { return report_; }
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  void count(const std::string& program, std::size_t devices, double seconds);

  ReinforcementReport report_;
  const RunDirectory& directory_;
  bool quiet_;
  LineWriter metrics_;
  std::unique_ptr<TraceWriter> trace_;
  std::vector<std::string> hosts_;
  std::vector<double> rewards_;        // by step
  std::int64_t start_ = 0;             // Unix time, ns: of the trace,
  std::int64_t first_ = 0, last_ = 0;  // of the first program's begin, of the last one's end
  Nanos step_ended_{};
  double filled_ = 0;  // sum over passes of the share of slots
  double busy_ = 0;    // device seconds between these
  bool finished_ = false;
};

}  // namespace hyperrun

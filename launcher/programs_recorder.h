// Writes down what runs of several programs report: metrics and progress as they come, trace and report at
// the end. Each kind of run adds what its steps come to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/run.h"
#include "runtime/report/loss_chart.h"
#include "runtime/report/programs.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/trace.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

// Where it goes, and by which clock.
struct RecorderOutputs {
  const RunDirectory* directory = nullptr;  // of metrics, report and chart; none: they are not written
  std::string trace;                        // file; empty: none
  bool quiet = false;                       // no lines of progress
  std::function<Nanos()> now = unix_time;   // by which the devices tell when they began and ended
};
RecorderOutputs outputs_in(const RunDirectory& directory, bool quiet);

class ProgramsRecorder {
 public:
  virtual ~ProgramsRecorder() = default;

  void begin(const std::vector<tasks::DeviceInfo>& devices);
  // A run of a program on `ranks`, in their order. What is no part of a step is in the trace, and not
  // counted.
  void ran(const std::string& program, const std::string& title, std::span<const std::int32_t> ranks,
           std::span<const tasks::InvocationDone> results, bool of_a_step = true);
  // What follows is no part of the steps' time, until something of a step has run again.
  void pause() { paused_ = true; }
  // Also after a failure, with what there is; a second time does nothing.
  void finish();

  virtual std::string text() const = 0;  // of the report, for people
  const std::vector<std::string>& hosts() const { return hosts_; }

 protected:
  explicit ProgramsRecorder(RecorderOutputs outputs);

  struct Chart {
    std::string_view file;
    LossChart chart;  // its points are the steps'
  };
  virtual ProgramsReport& common() = 0;
  virtual Chart chart() const = 0;
  virtual std::string report_json() const = 0;
  virtual void summarise() {}  // before the report is written

  // A step has ended, with the last of what ran; `value` is its point of the chart. Since the step before
  // had ended.
  Nanos end_step(double value);
  Nanos last_end() const { return Nanos(last_); }
  Nanos now() const { return outputs_.now(); }
  void write(const std::string& metrics_line);
  void print(const std::string& line) const;  // of progress

 private:
  void count(const std::string& program, std::size_t devices, double seconds);

  RecorderOutputs outputs_;
  std::optional<LineWriter> metrics_;
  std::unique_ptr<TraceWriter> trace_;
  std::vector<std::string> hosts_;
  std::vector<double> curve_;  // by step
  std::vector<bool> used_;     // by rank
  std::int64_t start_ = 0;     // ns by the devices' clock: of the trace,
  // of the begin of what ran first, and the end of what ran last, since the last pause
  std::int64_t first_ = 0, last_ = 0;
  double running_ = 0;  // seconds of steps before the last pause
  Nanos step_ended_{};
  bool paused_ = true;
  double busy_ = 0;  // device seconds of steps
  bool finished_ = false;
};

}  // namespace hyperrun

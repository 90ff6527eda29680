// The output files of a run: metrics while it runs; trace, report and a chart of the steps at its end. Each
// kind of run derives a recorder that adds the figures of its steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/report/goodput.h"
#include "runtime/report/loss_chart.h"
#include "runtime/report/metrics.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/trace.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

class RunTimeline;

Nanos unix_time();  // the present time

// The outputs and the clock of a recorder.
struct RecorderOutputs {
  const RunDirectory* directory =
      nullptr;                             // folder for metrics, report and chart; null: they are not written
  std::string trace;                       // the trace's file; empty: none
  bool quiet = false;                      // prints no progress
  std::function<Nanos()> now = unix_time;  // the clock of the devices' statistics
  RunTimeline* timeline = nullptr;         // learns of steps and losses; null: nobody does
};

class Recorder {
 public:
  virtual ~Recorder() = default;

  // Called at each start of the devices, before anything runs.
  void begin(const std::vector<tasks::DeviceInfo>& devices);
  // Records that the run has lost its devices at `when`, and goes on behind the first `from` steps. Steps
  // after these leave the report, as they are done again.
  void go_on(const Error& cause, Nanos when, std::int64_t from, LeftOut left_out);
  const std::vector<Restart>& restarts() const { return restarts_; }
  // Writes the results so far; also called after a failure. A second call does nothing.
  void finish();

  virtual std::string text() const = 0;                             // the report, for people
  const std::vector<std::string>& hosts() const { return hosts_; }  // by device, once the run has begun
  int ranks() const { return ranks_; }                              // of these devices
  std::optional<Goodput> goodput() const;                           // of a training, once a step has begun

 protected:
  explicit Recorder(RecorderOutputs outputs);

  struct Chart {
    std::string_view file;
    LossChart chart;
  };
  virtual void begin_device(const tasks::DeviceInfo& device) = 0;
  virtual std::int64_t steps_done() const = 0;
  virtual void forget_steps_after(std::int64_t step) = 0;
  virtual void summarise() {}  // called before the report is written
  virtual std::string report_json() const = 0;
  virtual Chart chart() const = 0;

  bool quiet() const { return outputs_.quiet; }
  Nanos now() const { return outputs_.now(); }
  RunTimeline* timeline() { return outputs_.timeline; }
  void write(const std::string& metrics_line);
  TraceWriter* trace() { return trace_.get(); }  // null if no trace is written

 private:
  RecorderOutputs outputs_;
  std::optional<MetricsWriter> metrics_;
  std::unique_ptr<TraceWriter> trace_;
  std::vector<std::string> hosts_;
  int ranks_ = 0;
  std::vector<Restart> restarts_;
  bool finished_ = false;
};

}  // namespace hyperrun

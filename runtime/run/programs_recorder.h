// The common part of the recorders of several programs: the device time of each program, and a trace slice
// for each task. Each kind of run derives a recorder that adds the metrics of its steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/report/programs.h"
#include "runtime/run/recorder.h"

namespace hyperrun {

class ProgramsRecorder : public Recorder {
 public:
  // Records that a program ran on `ranks`; `results` are in the same order. A task outside of a step goes to
  // the trace only, and is not counted.
  void ran(const std::string& program, const std::string& title, std::span<const std::int32_t> ranks,
           std::span<const tasks::InvocationDone> results, bool of_a_step = true);
  // Stops the time of steps until the next task of a step begins.
  void pause() { paused_ = true; }

 protected:
  explicit ProgramsRecorder(RecorderOutputs outputs);

  virtual ProgramsReport& common() = 0;
  void summarise() override;

  // Ends a step at the end of the last task. `value` is its point in the chart. Returns the time since the
  // previous step ended.
  Nanos end_step(double value);
  Nanos last_end() const { return Nanos(last_); }
  void print(const std::string& line) const;  // prints a line of progress unless quiet
  std::vector<LossPoint> points() const;      // the points of the chart, by step

 private:
  void begin_device(const tasks::DeviceInfo& device) override;
  std::int64_t steps_done() const override { return std::ssize(curve_); }
  void forget_steps_after(std::int64_t step) override;
  void count(const std::string& program, std::size_t devices, double seconds);

  std::vector<double> curve_;          // values of the chart, by step
  std::vector<bool> used_;             // by rank: whether a task has run there
  std::int64_t start_ = 0;             // time 0 of the trace, on the devices' clock, ns
  std::int64_t first_ = 0, last_ = 0;  // first begin and last end of a task since the last pause, ns
  double running_ = 0;                 // seconds of steps before the last pause
  Nanos step_ended_{};                 // end of the last step
  bool paused_ = true;
  double busy_ = 0;  // device seconds of all tasks of steps
};

}  // namespace hyperrun

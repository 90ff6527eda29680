// What runs of several programs report: how long each program's devices are in it, and a slice of the trace
// for each task. Each kind of run adds what its steps come to.
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
  // A program ran on `ranks`, in their order. What is no part of a step is in the trace, and not counted.
  void ran(const std::string& program, const std::string& title, std::span<const std::int32_t> ranks,
           std::span<const tasks::InvocationDone> results, bool of_a_step = true);
  // The time of steps stands still until a task of a step has run again.
  void pause() { paused_ = true; }

 protected:
  explicit ProgramsRecorder(RecorderOutputs outputs);

  virtual ProgramsReport& common() = 0;
  void summarise() override;

  // A step has ended with the task that ran last; `value` is its point in the chart. Returns the time since
  // the step before ended.
  Nanos end_step(double value);
  Nanos last_end() const { return Nanos(last_); }
  void print(const std::string& line) const;  // of progress
  std::vector<LossPoint> points() const;      // of the chart, by step

 private:
  void begin_device(const tasks::DeviceInfo& device) override;
  void count(const std::string& program, std::size_t devices, double seconds);

  std::vector<double> curve_;          // by step
  std::vector<bool> used_;             // by rank: whether a task has run there
  std::int64_t start_ = 0;             // time 0 of the trace, on the devices' clock, ns
  std::int64_t first_ = 0, last_ = 0;  // the first begin and the last end since the last pause, ns
  double running_ = 0;                 // seconds of steps before the last pause
  Nanos step_ended_{};
  bool paused_ = true;
  double busy_ = 0;  // device seconds of steps
};

}  // namespace hyperrun

// The class splits the time of an executed run into the parts of a simulated one (FaultOutcome). It is told
// what happens, in order, with times in seconds on the run's clock.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/faults/walk.h"

namespace hyperrun {

class ExecutedTimes {
 public:
  // The first step begins, and the account with it. Further calls do nothing.
  void begin(double time);
  // A step has ended; it begins the account if nothing has. `number`: from 1. `on_all`: on all devices that
  // the job asks for. `after_save`: state was saved or copied before it, for which it waited.
  void step(std::int64_t number, double begin, double end, bool on_all, bool after_save);
  // A fault at `time` has ended the steps, or the return to them.
  void fault(double time);
  // The steps after the first `from` are done again.
  void undo(std::int64_t from);
  // The run has waited for devices.
  void waited(double from, double to);
  // The processes begin to start.
  void start(double time);
  // They have started and joined, and begin to read the state.
  void read(double time);

  bool begun() const { return phase_ != Phase::kBefore; }
  // The median of the steps on all devices, in seconds; 0 if there is none.
  double step_on_all() const;
  std::int64_t steps() const { return static_cast<std::int64_t>(lasting_.size()); }
  std::int64_t saves() const { return saves_; }
  // The parts, where a step on all devices takes `step` seconds. They add up to the time since the first step
  // began.
  FaultOutcome outcome(double step) const;

 private:
  enum class Phase { kBefore, kSteps, kNoticing, kStarting, kReading };
  struct Step {
    std::int64_t number;
    double time;
  };
  void end_phase(double time);

  Phase phase_ = Phase::kBefore;
  double until_ = 0;  // all before is accounted for
  FaultOutcome out_;  // without `useful` and `slower`
  std::vector<Step> lasting_;
  std::vector<double> on_all_;  // times of steps on all devices
  std::int64_t undone_ = 0, saves_ = 0;
  double undone_time_ = 0;
};

}  // namespace hyperrun

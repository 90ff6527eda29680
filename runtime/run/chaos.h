// The faults that a run injects into itself: a certain list, and random ones by seed. Devices commit them
// (runtime/rank/fault.h); this side says which, when, and only once each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/run/run_timeline.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

class Chaos {
 public:
  // `saves`: whether the run saves checkpoints on its way.
  Chaos(const ChaosSpec& spec, std::int32_t devices, std::int32_t steps, bool saves);

  const std::vector<FaultSpec>& faults() const { return faults_; }

  // Adds the next fault that is due to an invocation of `step` steps done before it, for one of the devices
  // that run it. A fault that is added counts as having happened. None is added behind one after which the
  // devices start again: invocations are issued ahead, and would bring it to a device that is lost.
  void add_fault(tasks::Invocation& invocation, bool saves, const std::function<bool(std::int32_t)>& runs_on);

  // Has faults be drawn by time as well. `timeline` must outlive the chaos.
  void follow(RunTimeline& timeline) { timeline_ = &timeline; }

  // Begins a start of so many devices. Returns the fault that it brings, if one is left that happens while
  // they start, or is known to happen at its time.
  std::optional<FaultSpec> of_start(std::int32_t devices = 0);

  // The faults that have not happened.
  std::vector<FaultSpec> missed() const;

  // Devices that are gone for good after `step` steps.
  std::int32_t gone(std::int64_t step) const;

 private:
  std::vector<FaultSpec> faults_;
  std::vector<bool> happened_;  // by fault
  bool ends_this_start_ = false;
  RunTimeline* timeline_ = nullptr;  // null: nothing is drawn by time
};

}  // namespace hyperrun

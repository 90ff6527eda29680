// The simulation of steps of a job with encoders. It uses the same tasks and scheduler as a run. The
// simulator (runtime/sim) gives the duration of each Program, the scheduler the waits.
#pragma once

#include <array>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/compose/omni.h"
#include "runtime/omni/step_tasks.h"

namespace hyperrun {

// Durations of tasks: by kind, then by encoder (for its passes and fetches) or stage.
struct OmniTimes {
  std::array<std::vector<Nanos>, kOmniKinds> of_kind;

  Nanos of(const OmniTask& task) const;
};
OmniTimes task_times(const OmniPlan& plan, const Job& job);

// The groups of ranks that run the plan's tasks. A scheduler numbers them by their place in the list, from 1
// on.
struct OmniRanks {
  OmniGroups groups;
  std::vector<std::vector<std::int32_t>> ranks;
};
OmniRanks ranks_of(const OmniPlan& plan);

// The order in which a step's tasks are submitted, for the static scheduler. Encoders that share devices with
// the last stage do everything at once, since that stage is idle then. Others are a stage of the pipeline, or
// a part of its first.
OmniTasks::Order order_of(const OmniPlan& plan);
bool clips(const OmniPlan& plan);                                     // true if its programs have norms
tasks::TaskScheduler::Options scheduling_of(std::string_view order);  // MediaSpec::order

// A task with its times.
struct OmniSpan {
  OmniTask task;
  std::vector<std::int32_t> ranks;
  Nanos begin{}, end{};
};

struct OmniSimulation {
  std::vector<Nanos> ends;  // by step: end of its last task
  std::vector<Nanos> busy;  // by rank: time in tasks that compute or fetch
  std::vector<OmniSpan> spans;

  Nanos makespan() const { return ends.back(); }
  Nanos step() const { return makespan() / static_cast<std::int64_t>(ends.size()); }
  // Idle share of the devices' time, without devices that have no program.
  double bubble() const;
};

// Simulates steps one after the other, without a pause.
OmniSimulation simulate_steps(const OmniPlan& plan, const OmniTimes& times, std::int32_t devices,
                              std::string_view order, const std::vector<OmniPasses>& steps);

}  // namespace hyperrun

// Steps of a job with encoders on the simulated machine, by the tasks and the scheduler that serve a run: how
// long each of its Programs lasts says the simulator (runtime/sim), what waits for what the scheduler.
#pragma once

#include <array>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/compose/omni.h"
#include "runtime/omni/step_tasks.h"

namespace hyperrun {

// How long tasks last: by kind, then encoder (what is fetched of it, and what it does) or stage.
struct OmniTimes {
  std::array<std::vector<Nanos>, kOmniKinds> of_kind;

  Nanos of(const OmniTask& task) const;
};
OmniTimes task_times(const OmniPlan& plan, const Job& job);

// Of the ranks, the groups that run the plan's tasks: their number in the list, from 1 on, as a scheduler
// counts them.
struct OmniRanks {
  OmniGroups groups;
  std::vector<std::vector<std::int32_t>> ranks;
};
OmniRanks ranks_of(const OmniPlan& plan);

// How a step's tasks are put in order where it is settled before: encoders that share devices with the last
// stage do all at once, as it stands idle then; others are a stage of the pipeline, or a part of its first.
OmniTasks::Order order_of(const OmniPlan& plan);
bool clips(const OmniPlan& plan);                                       // its programs have norms
control::TaskScheduler::Options scheduling_of(std::string_view order);  // MediaSpec::order

// A task as it ran.
struct OmniSpan {
  OmniTask task;
  std::vector<std::int32_t> ranks;
  Nanos begin{}, end{};
};

struct OmniSimulation {
  std::vector<Nanos> ends;  // of each step: when its last task ended
  std::vector<Nanos> busy;  // by rank: in a task that computes, or fetches
  std::vector<OmniSpan> spans;

  Nanos makespan() const { return ends.back(); }
  Nanos step() const { return makespan() / static_cast<std::int64_t>(ends.size()); }
  // Share of the devices' time in which they do nothing, devices without a program left out.
  double bubble() const;
};

// Steps one after the other, without a pause.
OmniSimulation simulate_steps(const OmniPlan& plan, const OmniTimes& times, std::int32_t devices,
                              std::string_view order, const std::vector<OmniPasses>& steps);

}  // namespace hyperrun

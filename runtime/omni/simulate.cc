#include "runtime/omni/simulate.h"

#include <algorithm>
#include <string>

#include "runtime/base/error.h"
#include "runtime/sim/simulate.h"
#include "runtime/tasks/virtual_devices.h"

namespace hyperrun {
namespace {

std::size_t index(OmniKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

Nanos OmniTimes::of(const OmniTask& task) const {
  const std::vector<Nanos>& list = of_kind[index(task.kind)];
  const bool by_encoder = task.encoder >= 0;
  // A task that ends a step belongs to an encoder or a stage; encoders come first.
  const std::int32_t at = by_encoder ? task.encoder : task.stage;
  if (ends_step(task.kind) && !by_encoder)
    return list[of_kind[index(OmniKind::kEncode)].size() + static_cast<std::size_t>(at)];
  return list[static_cast<std::size_t>(at)];
}

OmniTimes task_times(const OmniPlan& plan, const Job& job) {
  OmniTimes out;
  const auto add = [&](OmniKind kind, const Plan& of, const std::string& program) {
    out.of_kind[index(kind)].push_back(makespan(of, program, job.supernode));
  };
  for (std::size_t e = 0; e < plan.encoders.size(); ++e) {
    const Plan& own = plan.encoders[e].program.plan;
    add(OmniKind::kEncode, own, "forward");
    add(OmniKind::kEncodeBackward, own, "backward");
    if (clips(plan)) add(OmniKind::kNorm, own, "norm");
    add(OmniKind::kUpdate, own, "update");
    add(OmniKind::kFeatures, plan.exchange, features_program(e, 0));
    add(OmniKind::kFeatureGradients, plan.exchange, feature_gradients_program(e, 0));
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Plan& own = plan.stages[s].plan;
    const bool last = s + 1 == plan.stages.size();
    // Each list has one entry a stage; an entry that does not apply is never read.
    out.of_kind[index(OmniKind::kForward)].push_back(last ? Nanos(0)
                                                          : makespan(own, "forward", job.supernode));
    out.of_kind[index(OmniKind::kScore)].push_back(last ? makespan(own, "score", job.supernode) : Nanos(0));
    add(OmniKind::kBackward, own, "backward");
    if (clips(plan)) add(OmniKind::kNorm, own, "norm");
    add(OmniKind::kUpdate, own, "update");
    out.of_kind[index(OmniKind::kStream)].push_back(
        s == 0 ? Nanos(0) : makespan(plan.exchange, stream_program(s - 1), job.supernode));
    out.of_kind[index(OmniKind::kStreamGradient)].push_back(
        last ? Nanos(0) : makespan(plan.exchange, stream_gradient_program(s), job.supernode));
  }
  return out;
}

OmniRanks ranks_of(const OmniPlan& plan) {
  OmniRanks out;
  const auto add = [&](const std::vector<int>& ranks) {
    const std::vector<std::int32_t> list(ranks.begin(), ranks.end());
    out.ranks.push_back(list);
    return static_cast<tasks::GroupId>(out.ranks.size());
  };
  for (const OmniPlan::Encoder& e : plan.encoders) {
    OmniGroups::Encoder groups;
    groups.all = add(e.program.ranks);
    groups.name = e.program.name;
    for (const std::vector<int>& replica : e.replicas) groups.replicas.push_back(add(replica));
    out.groups.encoders.push_back(std::move(groups));
  }
  for (const CompiledProgram& s : plan.stages) out.groups.stages.push_back({add(s.ranks), s.name});
  return out;
}

OmniTasks::Order order_of(const OmniPlan& plan) {
  const std::vector<int>& last = plan.stages.back().ranks;
  for (const OmniPlan::Encoder& e : plan.encoders)
    if (std::ranges::find_first_of(e.program.ranks, last) != e.program.ranks.end())
      return OmniTasks::Order::kOneByOne;
  return OmniTasks::Order::kPipeline;
}

bool clips(const OmniPlan& plan) {
  const std::vector<Program>& programs = plan.stages.front().plan.roles.front().programs;
  return std::ranges::find(programs, "norm", &Program::name) != programs.end();
}

// No task goes ahead of its inputs: fetched data may lie on devices that finish later than the fetching ones.
// In the dynamic order a device has one task at a time, so it takes the most urgent one when it is free.
tasks::TaskScheduler::Options scheduling_of(std::string_view order) {
  if (order == kStaticOrder) return {.scheduling = tasks::Scheduling::kStatic, .window = 4, .ahead = false};
  return {.scheduling = tasks::Scheduling::kDynamic, .window = 1, .ahead = false};
}

double OmniSimulation::bubble() const {
  double sum = 0;
  std::int64_t devices = 0;
  for (const Nanos b : busy)
    if (b.value > 0) {
      sum += static_cast<double>(b.value);
      ++devices;
    }
  return devices == 0 ? 0 : 1 - sum / (static_cast<double>(makespan().value) * static_cast<double>(devices));
}

OmniSimulation simulate_steps(const OmniPlan& plan, const OmniTimes& times, std::int32_t devices,
                              std::string_view order, const std::vector<OmniPasses>& steps) {
  const OmniRanks ranks = ranks_of(plan);
  tasks::DeviceGroups groups(devices);
  for (const std::vector<std::int32_t>& list : ranks.ranks) groups.add(list);
  tasks::TaskScheduler scheduler(std::move(groups), scheduling_of(order));
  OmniTasks tasks(scheduler, ranks.groups, order_of(plan), clips(plan));
  tasks::VirtualDevices machine(devices);
  OmniSimulation out;
  out.ends.resize(steps.size());
  const auto submit = [&](std::size_t step) {
    if (step < steps.size())
      tasks.begin(static_cast<std::int64_t>(step), steps[step],
                  step + 1 < steps.size() ? steps[step + 1] : OmniPasses{});
  };
  submit(0);
  submit(1);
  std::vector<std::int64_t> updates(steps.size());
  const auto programs = static_cast<std::int64_t>(plan.encoders.size() + plan.stages.size());
  for (;;) {
    while (const std::optional<tasks::Issue> issue = scheduler.next()) {
      tasks.issued(issue->task, issue->group);
      machine.give(issue->task, scheduler.groups().ranks(issue->group), times.of(tasks[issue->task]));
    }
    if (machine.idle()) break;
    tasks::VirtualDevices::Done done = machine.advance();
    const OmniTask task = tasks.done(done.id);
    const auto step = static_cast<std::size_t>(task.step);
    out.ends[step] = std::max(out.ends[step], done.end);
    out.spans.push_back({task, std::move(done.ranks), done.begin, done.end});
    if (task.kind == OmniKind::kUpdate && ++updates[step] == programs) submit(step + 2);
    scheduler.done(done.id);
  }
  if (scheduler.stuck()) throw scheduler.deadlock();
  out.busy.assign(machine.busy().begin(), machine.busy().end());
  return out;
}

}  // namespace hyperrun

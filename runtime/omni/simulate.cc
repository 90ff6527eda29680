#include "runtime/omni/simulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <string>

#include "runtime/base/error.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {
namespace {

std::size_t index(OmniKind kind) { return static_cast<std::size_t>(kind); }

class Times {
 public:
  explicit Times(const Job& job) : job_(job), machine_(machine_of(job.supernode)) {}

  Nanos of(const Plan& plan, std::string_view program) const {
    const Topology topology = hosts_of(machine_, static_cast<int>(plan.mesh.devices()));
    return simulate(plan, program, job_.supernode, topology).makespan;
  }

 private:
  const Job& job_;
  Machine machine_;
};

// Devices as those see them who wait for their tasks: each does its tasks in the order in which it got them,
// a task begins when all of its devices have come to it.
class Devices {
 public:
  Devices(std::int32_t devices, const OmniTimes& times)
      : queues_(static_cast<std::size_t>(devices)), times_(times) {
    result_.busy.assign(queues_.size(), Nanos(0));
  }

  void give(control::TaskId id, const OmniTask& task, std::span<const std::int32_t> ranks) {
    waiting_[id] = {task, {ranks.begin(), ranks.end()}, 0};
    for (const std::int32_t r : ranks) queues_[static_cast<std::size_t>(r)].push_back(id);
    for (const std::int32_t r : ranks) look_at(r);
  }

  bool idle() const { return ends_.empty(); }

  // Goes on to the next end of a task, which it returns.
  control::TaskId advance() {
    const auto [end, id] = ends_.top();
    ends_.pop();
    now_ = end;
    const Waiting done = std::move(waiting_.extract(id).mapped());
    for (const std::int32_t r : done.ranks) queues_[static_cast<std::size_t>(r)].pop_front();
    for (const std::int32_t r : done.ranks) look_at(r);
    return id;
  }

  Nanos now() const { return now_; }
  OmniSimulation take() && { return std::move(result_); }

 private:
  struct Waiting {
    OmniTask task;
    std::vector<std::int32_t> ranks;
    std::size_t here = 0;  // devices that have come to it
  };
  struct End {
    Nanos time;
    control::TaskId id;
    bool operator<(const End& other) const { return time != other.time ? time > other.time : id > other.id; }
  };

  void look_at(std::int32_t rank) {
    std::deque<control::TaskId>& queue = queues_[static_cast<std::size_t>(rank)];
    if (queue.empty()) return;
    Waiting& w = waiting_.at(queue.front());
    // Of a task that has begun nobody comes any more.
    if (w.here == w.ranks.size()) return;
    const auto at_it = std::ranges::count_if(w.ranks, [&](std::int32_t r) {
      const auto& q = queues_[static_cast<std::size_t>(r)];
      return !q.empty() && q.front() == queue.front();
    });
    if (static_cast<std::size_t>(at_it) < w.ranks.size()) return;
    w.here = w.ranks.size();
    const Nanos lasts = times_.of(w.task);
    ends_.push({now_ + lasts, queue.front()});
    for (const std::int32_t r : w.ranks) result_.busy[static_cast<std::size_t>(r)] += lasts;
    result_.spans.push_back({w.task, w.ranks, now_, now_ + lasts});
  }

  std::vector<std::deque<control::TaskId>> queues_;  // by rank
  const OmniTimes& times_;
  std::map<control::TaskId, Waiting> waiting_;  // under way too
  std::priority_queue<End> ends_;
  Nanos now_{};
  OmniSimulation result_;
};

}  // namespace

Nanos OmniTimes::of(const OmniTask& task) const {
  const std::vector<Nanos>& list = of_kind[index(task.kind)];
  const bool by_encoder = task.encoder >= 0;
  // What ends a step is of an encoder or of a stage: encoders come first.
  const std::int32_t at = by_encoder ? task.encoder : task.stage;
  if (ends_step(task.kind) && !by_encoder)
    return list[of_kind[index(OmniKind::kEncode)].size() + static_cast<std::size_t>(at)];
  return list[static_cast<std::size_t>(at)];
}

OmniTimes task_times(const OmniPlan& plan, const Job& job) {
  const Times times(job);
  OmniTimes out;
  const auto add = [&](OmniKind kind, const Plan& of, const std::string& program) {
    out.of_kind[index(kind)].push_back(times.of(of, program));
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
    // One a stage in each list; what a stage does not do is never asked for.
    out.of_kind[index(OmniKind::kForward)].push_back(last ? Nanos(0) : times.of(own, "forward"));
    out.of_kind[index(OmniKind::kScore)].push_back(last ? times.of(own, "score") : Nanos(0));
    add(OmniKind::kBackward, own, "backward");
    if (clips(plan)) add(OmniKind::kNorm, own, "norm");
    add(OmniKind::kUpdate, own, "update");
    out.of_kind[index(OmniKind::kStream)].push_back(s == 0 ? Nanos(0)
                                                           : times.of(plan.exchange, stream_program(s - 1)));
    out.of_kind[index(OmniKind::kStreamGradient)].push_back(
        last ? Nanos(0) : times.of(plan.exchange, stream_gradient_program(s)));
  }
  return out;
}

OmniRanks ranks_of(const OmniPlan& plan) {
  OmniRanks out;
  const auto add = [&](const std::vector<int>& ranks) {
    const std::vector<std::int32_t> list(ranks.begin(), ranks.end());
    out.ranks.push_back(list);
    return static_cast<control::GroupId>(out.ranks.size());
  };
  for (const OmniPlan::Encoder& e : plan.encoders) {
    OmniGroups::Encoder groups;
    groups.all = add(e.program.ranks);
    for (const std::vector<int>& replica : e.replicas) groups.replicas.push_back(add(replica));
    out.groups.encoders.push_back(std::move(groups));
  }
  for (const CompiledProgram& s : plan.stages) out.groups.stages.push_back(add(s.ranks));
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

// Nothing goes ahead of its inputs: what is fetched may lie on devices that are not done with it when those
// are that fetch. In the dynamic order a device has one task at a time, so it takes what is most urgent when
// it is done with it.
control::TaskScheduler::Options scheduling_of(std::string_view order) {
  if (order == kStaticOrder) return {.scheduling = control::Scheduling::kStatic, .window = 4, .ahead = false};
  return {.scheduling = control::Scheduling::kDynamic, .window = 1, .ahead = false};
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
  control::DeviceGroups groups(devices);
  for (const std::vector<std::int32_t>& list : ranks.ranks) groups.add(list);
  control::TaskScheduler scheduler(std::move(groups), scheduling_of(order));
  OmniTasks tasks(scheduler, ranks.groups, order_of(plan), clips(plan));
  Devices machine(devices, times);
  std::vector<Nanos> ends(steps.size());
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
    while (const std::optional<control::Issue> issue = scheduler.next()) {
      tasks.issued(issue->task, issue->group);
      machine.give(issue->task, tasks[issue->task], scheduler.groups().ranks(issue->group));
    }
    if (machine.idle()) break;
    const control::TaskId id = machine.advance();
    const OmniTask task = tasks.done(id);
    const auto step = static_cast<std::size_t>(task.step);
    ends[step] = std::max(ends[step], machine.now());
    if (task.kind == OmniKind::kUpdate && ++updates[step] == programs) submit(step + 2);
    scheduler.done(id);
  }
  if (scheduler.stuck()) throw scheduler.deadlock();
  OmniSimulation out = std::move(machine).take();
  out.ends = std::move(ends);
  return out;
}

}  // namespace hyperrun

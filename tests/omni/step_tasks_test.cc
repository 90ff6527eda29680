// The tasks of steps of several programs, on devices that finish them in any order.
#include "runtime/omni/step_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <tuple>

#include "tests/tasks/task_world.h"

namespace hyperrun {
namespace {

using tasks::Scheduling;
using tasks::TaskId;

// Two encoders, of two replicas and of one, and a text model of three stages, on their devices.
struct Placement {
  const char* name;
  std::vector<std::vector<std::int32_t>> replicas;  // ranks of the first encoder's replicas
  std::vector<std::int32_t> second;
  std::vector<std::vector<std::int32_t>> stages;
};

const Placement kPlacements[] = {
    {"apart", {{0}, {1}}, {2}, {{3, 4}, {5, 6}, {7, 8}}},
    {"together", {{0, 1}, {2, 3}}, {4, 5}, {{0, 1}, {2, 3}, {4, 5}}},
    {"with the first stage", {{0}, {1}}, {0, 1}, {{0, 1}, {2}, {3}}},
    {"across stages", {{0, 1, 2}}, {2, 3}, {{0, 1}, {2}, {3}}},
};

std::vector<std::int32_t> joined(const std::vector<std::vector<std::int32_t>>& lists) {
  std::vector<std::int32_t> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Numbers of passes of both encoders: none, some or many.
OmniPasses passes_of(std::int64_t step, std::int32_t micro_batches) {
  OmniPasses passes;
  for (std::int32_t m = 0; m < micro_batches; ++m)
    passes.push_back(
        {static_cast<std::int32_t>((step + m) % 4), static_cast<std::int32_t>((2 * step + m) % 3)});
  return passes;
}

class Steps {
 public:
  Steps(const Placement& at, Scheduling scheduling, OmniTasks::Order order, std::int64_t steps,
        std::uint64_t seed, bool clips)
      : scheduler_(
            groups(at),
            {.scheduling = scheduling, .window = scheduling == Scheduling::kStatic ? 4 : 1, .ahead = false}),
        tasks_(scheduler_, groups_, order, clips),
        world_(scheduler_, seed),
        steps_(steps) {
    world_.on_issue = [this](TaskId id, tasks::GroupId group) {
      tasks_.issued(id, group);
      const std::span<const std::int32_t> ranks = scheduler_.groups().ranks(group);
      issued.push_back({tasks_[id], {ranks.begin(), ranks.end()}});
      const OmniTask& t = tasks_[id];
      // Devices run their tasks in the order of issue.
      if (t.kind == OmniKind::kUpdate) updated_.insert({t.step, t.encoder, t.stage});
      if (t.kind == OmniKind::kEncode || t.kind == OmniKind::kForward) {
        EXPECT_TRUE(t.step == 0 || updated_.contains({t.step - 1, t.stage < 0 ? t.encoder : -1, t.stage}))
            << describe(t) << " with weights of before";
      }
    };
    world_.on_done = [this](TaskId id) { finished(id); };
    submit(0);
    submit(1);
    world_.run();
    EXPECT_FALSE(scheduler_.stuck());
    EXPECT_TRUE(tasks_.idle());
    for (const auto& program : scheduler_.progress())
      EXPECT_EQ(program.queued, 0) << "has more uses than users";
  }

  struct Issued {
    OmniTask task;
    std::vector<std::int32_t> ranks;
  };
  std::vector<OmniTask> done;  // in the order of completion
  std::vector<Issued> issued;  // in the order of issue

 private:
  tasks::DeviceGroups groups(const Placement& at) {
    std::int32_t devices = 0;
    for (const auto& list : at.stages)
      for (const std::int32_t r : list) devices = std::max(devices, r + 1);
    tasks::DeviceGroups all(devices);
    OmniGroups::Encoder first{all.add(joined(at.replicas)), {}}, second{all.add(at.second), {}};
    for (const auto& list : at.replicas) first.replicas.push_back(all.add(list));
    second.replicas = {second.all};
    groups_.encoders = {first, second};
    for (const auto& list : at.stages) groups_.stages.push_back({all.add(list)});
    return all;
  }

  void submit(std::int64_t step) {
    if (step < steps_)
      tasks_.begin(step, passes_of(step, kMicroBatches),
                   step + 1 < steps_ ? passes_of(step + 1, kMicroBatches) : OmniPasses{});
  }

  void finished(TaskId id) {
    done.push_back(tasks_.done(id));
    if (done.back().kind == OmniKind::kUpdate && ++updates_[done.back().step] == 5)
      submit(done.back().step + 2);
  }

  static constexpr std::int32_t kMicroBatches = 5;
  OmniGroups groups_;
  tasks::TaskScheduler scheduler_;
  OmniTasks tasks_;
  tasks::TaskWorld world_;
  std::int64_t steps_;
  std::map<std::int64_t, int> updates_;
  std::set<std::tuple<std::int64_t, std::int32_t, std::int32_t>> updated_;  // step, encoder, stage: issued
};

// Index of a task in the list; each is there once.
class Places {
 public:
  explicit Places(const std::vector<OmniTask>& done) {
    for (std::size_t i = 0; i < done.size(); ++i) {
      const OmniTask& t = done[i];
      EXPECT_TRUE(at_.emplace(key(t.kind, t.step, t.micro_batch, t.encoder, t.pass, t.stage), i).second);
    }
  }
  std::size_t operator()(OmniKind kind, std::int64_t step, std::int32_t m, std::int32_t encoder,
                         std::int32_t pass, std::int32_t stage) const {
    const auto found = at_.find(key(kind, step, m, encoder, pass, stage));
    EXPECT_NE(found, at_.end()) << name(kind) << " of step " << step << ", micro-batch " << m;
    return found == at_.end() ? 0 : found->second;
  }

 private:
  using Key = std::tuple<OmniKind, std::int64_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
  static Key key(OmniKind kind, std::int64_t step, std::int32_t m, std::int32_t encoder, std::int32_t pass,
                 std::int32_t stage) {
    return {kind, step, m, encoder, pass, stage};
  }
  std::map<Key, std::size_t> at_;
};

// Each program adds up and applies its gradients step by step; with clipping, all norms come between.
void expect_ends_of_steps(const Places& at, std::int64_t steps, bool clips) {
  const auto ends = [&](OmniKind kind, std::int64_t step, int program) {
    return program < 2 ? at(kind, step, 0, program, 0, -1) : at(kind, step, 0, -1, 0, program - 2);
  };
  for (std::int64_t step = 0; step < steps; ++step)
    for (int p = 0; p < 5; ++p) {
      const OmniKind first = clips ? OmniKind::kNorm : OmniKind::kUpdate;
      if (step > 0) {
        EXPECT_LT(ends(OmniKind::kUpdate, step - 1, p), ends(first, step, p));
      }
      for (int other = 0; clips && other < 5; ++other)
        EXPECT_LT(ends(OmniKind::kNorm, step, other), ends(OmniKind::kUpdate, step, p));
    }
}

void expect_what_waits_waited(const std::vector<OmniTask>& done, std::int64_t steps, bool clips) {
  const Places at(done);
  const OmniKind first_of_end = clips ? OmniKind::kNorm : OmniKind::kUpdate;
  EXPECT_EQ(std::ranges::count(done, OmniKind::kNorm, &OmniTask::kind), clips ? 5 * steps : 0);
  expect_ends_of_steps(at, steps, clips);
  for (std::int64_t step = 0; step < steps; ++step) {
    const OmniPasses passes = passes_of(step, 5);
    for (std::int32_t m = 0; m < 5; ++m) {
      const auto backward = [&](std::int32_t s) { return at(OmniKind::kBackward, step, m, -1, 0, s); };
      for (std::int32_t e = 0; e < 2; ++e)
        for (std::int32_t p = 0; p < passes[static_cast<std::size_t>(m)][static_cast<std::size_t>(e)]; ++p) {
          const std::size_t features = at(OmniKind::kFeatures, step, m, e, p, 0);
          EXPECT_LT(at(OmniKind::kEncode, step, m, e, p, -1), features);
          EXPECT_LT(features, at(OmniKind::kForward, step, m, -1, 0, 0));
          const std::size_t gradients = at(OmniKind::kFeatureGradients, step, m, e, p, -1);
          EXPECT_LT(backward(0), gradients);
          const std::size_t learnt = at(OmniKind::kEncodeBackward, step, m, e, p, -1);
          EXPECT_LT(gradients, learnt);
          EXPECT_LT(learnt, at(first_of_end, step, 0, e, 0, -1));
        }
      for (std::int32_t s = 0; s < 3; ++s) {
        if (s > 0) {
          EXPECT_LT(at(OmniKind::kForward, step, m, -1, 0, s - 1), at(OmniKind::kStream, step, m, -1, 0, s));
          EXPECT_LT(at(OmniKind::kStream, step, m, -1, 0, s),
                    s < 2 ? at(OmniKind::kForward, step, m, -1, 0, s) : backward(2));
        }
        if (s < 2) {
          const std::size_t gradient = at(OmniKind::kStreamGradient, step, m, -1, 0, s);
          EXPECT_LT(backward(s + 1), gradient);
          EXPECT_LT(gradient, backward(s));
        }
        EXPECT_LT(backward(s), at(first_of_end, step, 0, -1, 0, s));
      }
    }
  }
}

// The order in which programs add up their gradients.
std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>,
         std::vector<std::pair<std::int32_t, std::int32_t>>>
sums(const std::vector<OmniTask>& done) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>,
           std::vector<std::pair<std::int32_t, std::int32_t>>>
      of;
  for (const OmniTask& t : done)
    if (t.kind == OmniKind::kBackward || t.kind == OmniKind::kEncodeBackward)
      of[{t.encoder, t.stage, t.replica}].emplace_back(
          static_cast<std::int32_t>(t.step) * 100 + t.micro_batch, t.pass);
  return of;
}

TEST(OmniTasks, WaitForWhatTheyNeedWhoeverIsReadyWhen) {
  constexpr std::int64_t kSteps = 4;
  std::set<std::vector<std::string>> orders;
  for (const Placement& at : kPlacements)
    for (const OmniTasks::Order order : {OmniTasks::Order::kPipeline, OmniTasks::Order::kOneByOne})
      for (const Scheduling scheduling : {Scheduling::kStatic, Scheduling::kDynamic})
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
          SCOPED_TRACE(std::string(at.name) + ", seed " + std::to_string(seed));
          const bool clips = seed % 2 == 0;
          const Steps steps(at, scheduling, order, kSteps, seed, clips);
          expect_what_waits_waited(steps.done, kSteps, clips);
          std::vector<std::string> names;
          for (const OmniTask& t : steps.done) names.push_back(describe(t));
          orders.insert(std::move(names));
        }
  EXPECT_GT(orders.size(), 100U) << "all finish in nearly the same order: nothing was tried";
}

// With clipping a device updates all its weights before it begins a next step: others wait for that.
TEST(OmniTasks, UpdateBeforeEncodersReadOn) {
  for (const Placement& at : kPlacements)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Steps steps(at, Scheduling::kDynamic, OmniTasks::Order::kPipeline, 3, seed, true);
      std::map<std::int32_t, std::int64_t> begun;  // by device: the step of the last encoder's pass
      for (const Steps::Issued& i : steps.issued)
        for (const std::int32_t rank : i.ranks) {
          if (i.task.kind == OmniKind::kEncode) begun[rank] = i.task.step;
          if (i.task.kind == OmniKind::kUpdate) {
            EXPECT_LE(begun[rank], i.task.step) << at.name << ", seed " << seed << ", device " << rank;
          }
        }
    }
}

// An encoder on devices of several stages would otherwise wait until the text model has no micro-batch under
// way: one would pass all stages before the next begins.
TEST(OmniTasks, EncodersAcrossStagesReadBeforeTheTextModelBegins) {
  const Placement& at = kPlacements[3];
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Steps steps(at, Scheduling::kDynamic, OmniTasks::Order::kPipeline, 3, seed, seed % 2 == 0);
    std::set<std::int64_t> begun;  // steps with a begun forward pass that needed the encoder
    for (const Steps::Issued& i : steps.issued) {
      const OmniPasses passes = passes_of(i.task.step, 5);
      if (i.task.kind == OmniKind::kForward && passes[static_cast<std::size_t>(i.task.micro_batch)][0] > 0)
        begun.insert(i.task.step);
      if (i.task.kind == OmniKind::kEncode && i.task.encoder == 0) {
        EXPECT_FALSE(begun.contains(i.task.step)) << describe(i.task) << ", seed " << seed;
      }
    }
  }
}

TEST(OmniTasks, AddUpGradientsInOneOrder) {
  for (const Placement& at : kPlacements) {
    const auto wanted = sums(Steps(at, Scheduling::kStatic, OmniTasks::Order::kPipeline, 3, 1, true).done);
    for (std::uint64_t seed = 0; seed < 20; ++seed)
      EXPECT_EQ(sums(Steps(at, Scheduling::kDynamic, OmniTasks::Order::kOneByOne, 3, seed, true).done),
                wanted)
          << at.name;
  }
}

}  // namespace
}  // namespace hyperrun

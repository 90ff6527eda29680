// Weights that go from the plan that trains them to another plan, beside it or on its devices.
#include "runtime/compose/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "collectives/group.h"
#include "runtime/compile/compile.h"
#include "runtime/compose/colocate.h"
#include "runtime/device/device_threads.h"
#include "runtime/device/executor.h"
#include "runtime/device/tensor_parts.h"
#include "runtime/model/text/sampler.h"
#include "runtime/model/text/synthetic.h"
#include "runtime/sim/simulate.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

constexpr double kRate = 1e-3;

struct Case {
  const char* name;
  std::string from;  // layouts, and the ranks
  std::vector<int> from_ranks;
  std::string to;
  std::vector<int> to_ranks;
  int hosts = 1;
  bool pool = false;  // true if the learner keeps its weights there, as far as it can
};

std::vector<int> ranks(int first, int count) {
  std::vector<int> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return list;
}

int world_of(const Case& c) {
  int most = 0;
  for (const auto& list : {c.from_ranks, c.to_ranks})
    for (const int r : list) most = std::max(most, r);
  return (most + c.hosts) / c.hosts * c.hosts;
}

Job learner_job(const Case& c) {
  Job job = small_job(c.from);
  if (!c.pool) return job;
  job.supernode.pool = Bytes(std::int64_t{64} << 20);
  job.memory = {"weights", "pool", {"weights"}};
  job.supernode.hbm = Bytes(compile(small_job(c.from)).plan.peak().value - 300'000);
  return job;
}

// The learning rate is constant.
Job alike(const Case& c) {
  Job job = learner_job(c);
  job.training.lr = job.training.min_lr = kRate;
  job.training.warmup_steps = 0;
  return job;
}

Job actor_job(const Case& c) {
  Job job = small_job(c.to);
  job.run.generate.tokens = 4;
  return job;
}

// A learner, an actor and the exchange between them, each on its ranks.
struct Joint {
  Plan learner, actor, exchange;
};

Joint joint(const Case& c) {
  Joint j{compile(learner_job(c)).plan, compile_generation(actor_job(c)).plan, {}};
  const std::vector<TierBytes> ends =
      colocate({{&j.learner, c.from_ranks}, {&j.actor, c.to_ranks}}, world_of(c));
  j.exchange = compile_exchange({j.learner, c.from_ranks}, {j.actor, c.to_ranks}, ends);
  return j;
}

bool takes_part(const std::vector<int>& list, int rank) {
  return std::ranges::find(list, rank) != list.end();
}

class Devices {
 public:
  Devices(const Case& c, const Joint& joint)
      : case_(c),
        joint_(joint),
        job_(learner_job(c)),
        tokens_(synthetic_tokens(job_.model.vocab, 20000)),
        sampler_(tokens_, job_.model.sequence, job_.training.batch, job_.run.seed),
        threads_(Topology::uniform(c.hosts, world_of(c) / c.hosts), Bytes(std::int64_t{64} << 20), peaks()) {
    feed_.batch = [this](auto step, auto first, auto count, auto from, auto length, auto* ids,
                         auto* targets) {
      sampler_.fill(step, first, count, {static_cast<std::int32_t>(from), static_cast<std::int32_t>(length)},
                    ids, targets);
    };
  }

  // Trains and sends its weights, twice.
  void run() {
    threads_.run([this](int rank) { device(rank); });
  }

  std::map<std::int64_t, double> losses;  // by step

  // A tensor of the learner at the end.
  std::vector<std::byte> whole(const StateTensor& t, std::size_t role) {
    std::int64_t bytes = size_of(t.dtype);
    for (const std::int64_t size : t.shape) bytes *= size;
    std::vector<std::byte> all(static_cast<std::size_t>(bytes));
    for (const int d : owners(t, joint_.learner, role)) {
      std::vector<std::byte> part = bytes_of(t, case_.from_ranks[static_cast<std::size_t>(d)]);
      copy_part(t, joint_.learner.mesh, d, 0, t.bytes.value, all.data(), part.data(), PartCopy::kIntoWhole);
    }
    return all;
  }

  std::vector<std::byte> bytes_of(const StateTensor& t, int rank) {
    std::vector<std::byte> part(static_cast<std::size_t>(t.bytes.value));
    const DeviceMemory memory = threads_.memory(rank);
    if (t.tier == Tier::kHbm)
      std::memcpy(part.data(), memory.hbm.view(t.offset, t.bytes).data(), part.size());
    else
      memory.beyond(t.tier).read(t.offset, part);
    return part;
  }

 private:
  TierBytes peaks() const {
    TierBytes most{};
    for (const Plan* plan : {&joint_.learner, &joint_.actor, &joint_.exchange})
      for (std::size_t t = 0; t < kTiers; ++t) most[t] = std::max(most[t], plan->peaks()[t]);
    return most;
  }

  void device(int rank) {
    World& world = threads_.world(rank);
    const DeviceMemory memory = threads_.memory(rank);
    int key = 0;
    std::unique_ptr<Executor> learner, actor;
    const auto seat = [&](const Plan& plan, const std::vector<int>& list) {
      const int first = std::exchange(key, key + keys_of(plan));
      return takes_part(list, rank)
                 ? std::make_unique<Executor>(plan, memory, PlanWorld(world, list, first), feed_,
                                              ExecutorOptions{.seed = job_.run.seed})
                 : nullptr;
    };
    learner = seat(joint_.learner, case_.from_ranks);
    actor = seat(joint_.actor, case_.to_ranks);
    Executor exchange(joint_.exchange, memory, PlanWorld(world, ranks(0, world.size()), key), feed_, {});
    if (learner) learner->run(joint_.learner.program_index("init"), {});
    for (std::int64_t step = 0; step < 2; ++step) {
      if (learner)
        note(step, learner->run(joint_.learner.program_index("train"), {.step = step, .lr = kRate}));
      exchange.run(0, {});
    }
  }

  // The stages that have the model's end report the same.
  void note(std::int64_t step, const InvocationResult& result) {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, value] : result.outputs)
      if (name == "loss") losses[step] = value;
  }

  const Case& case_;
  const Joint& joint_;
  Job job_;
  std::vector<std::int32_t> tokens_;
  Sampler sampler_;
  Feed feed_;
  DeviceThreads threads_;
  std::mutex mutex_;
};

class Exchanges : public ::testing::TestWithParam<Case> {};

// Weights arrive in the format of the receiver.
std::vector<std::byte> rounded(const std::vector<std::byte>& from, DType is, DType wanted) {
  if (is == wanted) return from;
  std::vector<std::byte> to(from.size() / 2);
  for (std::size_t i = 0; i < from.size() / 4; ++i) {
    float wide = 0;
    std::memcpy(&wide, from.data() + 4 * i, 4);
    const std::uint16_t narrow = f32_to_bf16(wide);
    std::memcpy(to.data() + 2 * i, &narrow, 2);
  }
  return to;
}

TEST_P(Exchanges, GiveEveryDeviceItsPartOfTheLearnersWeights) {
  const Case& c = GetParam();
  const Joint plans = joint(c);
  Devices devices(c, plans);
  devices.run();

  std::map<std::string, std::vector<std::byte>> learned;
  std::map<std::string, DType> types;
  for (std::size_t r = 0; r < plans.learner.roles.size(); ++r)
    for (const StateTensor& t : plans.learner.roles[r].state)
      if (t.cls == TensorClass::kWeight && !learned.contains(t.name))
        learned[t.name] = devices.whole(t, r), types[t.name] = t.dtype;
  int compared = 0;
  for (std::size_t d = 0; d < c.to_ranks.size(); ++d)
    for (const StateTensor& t : plans.actor.of_device(static_cast<std::int64_t>(d)).state) {
      if (t.cls != TensorClass::kWeight) continue;
      std::vector<std::byte> whole = rounded(learned.at(t.name), types.at(t.name), t.dtype);
      std::vector<std::byte> part(static_cast<std::size_t>(t.bytes.value));
      copy_part(t, plans.actor.mesh, static_cast<int>(d), 0, t.bytes.value, whole.data(), part.data(),
                PartCopy::kOutOfWhole);
      EXPECT_EQ(devices.bytes_of(t, c.to_ranks[d]), part) << t.name << " on rank " << c.to_ranks[d];
      ++compared;
    }
  EXPECT_GT(compared, 10);

  // No other memory was touched.
  RunOptions two_steps;
  two_steps.steps = 2;
  const RunResult alone = run_in_process(alike(c), two_steps);
  EXPECT_EQ(devices.losses, (std::map<std::int64_t, double>{{0, alone.losses[0]}, {1, alone.losses[1]}}));
  const auto beyond = [](const StateTensor& t) { return t.tier != Tier::kHbm; };
  EXPECT_EQ(std::ranges::any_of(plans.learner.roles[0].state, beyond), c.pool);
}

TEST_P(Exchanges, RunOnTheSimulatedMachineAsWell) {
  const Case& c = GetParam();
  const Joint plans = joint(c);
  SupernodeSpec spec = small_job(1, 1).supernode;
  spec.devices = world_of(c);
  const SimResult r = simulate(plans.exchange, "exchange", spec, Topology::one_host(spec.devices));
  EXPECT_GT(r.makespan.value, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, Exchanges,
    ::testing::Values(Case{"beside", "dp:2 tp:2 zero1", ranks(0, 4), "tp:2", ranks(4, 2)},
                      Case{"on_the_same", "dp:4 zero3", ranks(0, 4), "dp:2 tp:2", ranks(0, 4)},
                      Case{"on_some_of_them", "tp:4", ranks(0, 4), "dp:2", ranks(1, 2)},
                      Case{"from_one", "dp:1", ranks(2, 1), "tp:2", ranks(0, 2)},
                      Case{"stages", "pp:2 dp:2", ranks(0, 4), "tp:2", ranks(3, 2)},
                      Case{"to_stages", "tp:2", ranks(0, 2), "pp:2 dp:1", ranks(1, 2)},
                      Case{"grid", "tpx:2 tpy:2", ranks(0, 4), "tp:4", {3, 2, 1, 0}},
                      Case{"rounded", "dp:2 tp:2 bf16", ranks(0, 4), "dp:2 bf16", ranks(4, 2)},
                      Case{"between_hosts", "dp:2 tp:2", ranks(0, 4), "tp:2", ranks(4, 2), 2},
                      Case{"out_of_the_pool", "dp:2", ranks(0, 2), "tp:2", ranks(1, 2), 1, true}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Exchange, OfAnotherModelIsRefused) {
  const Plan learner = compile(small_job("tp:2")).plan;
  Job other = small_job("tp:2");
  set_layers(other, other.model.layers + 1);
  other.run.generate.tokens = 1;
  const Plan actor = compile_generation(other).plan;
  EXPECT_ERROR(compile_exchange({learner, {0, 1}}, {actor, {0, 1}}, std::vector<TierBytes>(2)),
               Code::kBadLayout, "", "no weight");
}

}  // namespace
}  // namespace hyperrun::testing

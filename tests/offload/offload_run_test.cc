// Executed offloading: every policy and tier gives the same bits within the budget, with the peaks and
// traffic that were planned and simulated.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "memory/pool_placement.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/job_forecast.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

struct Case {
  const char* parallel;
  const char* policy;
  double budget = 0.6;  // share of the peak without transfers
  const char* tier = "pool";
  bool threads = false;
};

std::string text(const Case& c) {
  return test_title(std::string(c.parallel) + " " + c.policy) + "_" +
         std::to_string(static_cast<int>(100 * c.budget)) + (c.threads ? "_threads" : "") +
         (std::string(c.tier) == "flash" ? "_flash" : "");
}

Job job_of(const char* parallel) {
  Job job = small_job(parallel);
  set_layers(job, 4);
  job.training.micro_batches = 2;
  job.training.batch = 16;
  job.training.steps = 3;
  return job;
}

Job moving(const Case& c) {
  Job job = job_of(c.parallel);
  const Bytes peak = compile(job).plan.peak();
  job.supernode.hbm = Bytes(static_cast<std::int64_t>(c.budget * static_cast<double>(peak.value)));
  job.supernode.pool = job.supernode.flash = kGiB;
  job.memory.policy = c.policy;
  job.memory.tier = c.tier;
  return job;
}

bool moves(const Plan& plan) { return plan.peak(Tier::kPool).value > 0 || plan.peak(Tier::kFlash).value > 0; }

class Offload : public ::testing::TestWithParam<Case> {};

TEST_P(Offload, GivesTheSameBitsWithinTheBudget) {
  const Job job = moving(GetParam());
  const Plan plan = compile(job).plan;
  ASSERT_LE(plan.peak(), job.supernode.hbm);
  ASSERT_TRUE(moves(plan));
  // The curve of a lower tier begins and ends with the offloaded state and never exceeds the planned peak.
  const auto expect_curve = [](const std::array<Curve, kTiers>& live, const Role& role) {
    for (const Tier tier : {Tier::kPool, Tier::kFlash}) {
      const Curve& curve = live[index_of(tier)];
      std::int64_t state = 0, most = 0;
      for (const Buffer& b : role.program("train").buffers)
        if (b.state && b.tier == tier) state += b.bytes.value;
      for (const auto& [time, bytes] : curve) most = std::max(most, bytes);
      EXPECT_EQ(curve.empty() ? 0 : curve.back().second, state);
      EXPECT_EQ(curve.empty(), role.program("train").peak[index_of(tier)].value == 0);
      EXPECT_LE(most, role.program("train").peak[index_of(tier)].value);
    }
  };
  const RunResult kept = run_in_process(job_of(GetParam().parallel));
  const RunResult moved = run_in_process(job, {.thread_per_stream = GetParam().threads});
  EXPECT_EQ(moved.losses, kept.losses);
  EXPECT_EQ(moved.grad_norms, kept.grad_norms);
  EXPECT_EQ(moved.weights, kept.weights);
  EXPECT_EQ(moved.moments, kept.moments);
  const JobForecast f = forecast(job, plan, hosts_of(machine_of(job.supernode), job.supernode.devices));
  for (std::size_t d = 0; d < moved.stats.size(); ++d) {
    const std::size_t role = plan.role_of(static_cast<std::int64_t>(d));
    EXPECT_EQ(moved.stats[d].high_water, f.high_water[role]) << d;
    EXPECT_EQ(moved.stats[d].high_water[0], plan.roles[role].peak()) << d;
    EXPECT_EQ(moved.stats[d].high_water[1], plan.roles[role].peak(Tier::kPool)) << d;
    EXPECT_EQ(moved.stats[d].traffic, f.train.stats(static_cast<int>(d)).traffic) << d;
    expect_curve(moved.stats[d].live, plan.roles[role]);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Offload,
                         ::testing::Values(Case{"dp:1", "hyperoffload"}, Case{"dp:1", "hyperoffload", 0.4},
                                           Case{"dp:1", "reactive"}, Case{"dp:1", "weights", 0.97},
                                           Case{"dp:1", "hyperoffload", 0.6, "flash"},
                                           Case{"dp:1", "reactive", 0.6, "flash"},
                                           Case{"dp:1", "hyperoffload", 0.6, "pool", true}),
                         [](const auto& info) { return text(info.param); });

INSTANTIATE_TEST_SUITE_P(
    Layouts, Offload,
    ::testing::Values(Case{"dp:2 zero1", "hyperoffload"}, Case{"tp:2 sp", "hyperoffload"},
                      Case{"tp:2 sp", "reactive"}, Case{"dp:2 zero3", "hyperoffload"},
                      Case{"pp:2 dp:2", "hyperoffload"}, Case{"pp:2 tp:2 sp zero_bubble", "hyperoffload"},
                      Case{"pp:2 interleaved chunks:2", "reactive", 0.7},
                      Case{"pp:2 tp:2 sp zero_bubble", "reactive", 0.8}, Case{"ring:4", "hyperoffload"},
                      Case{"cp:2", "hyperoffload"}, Case{"tpx:2 tpy:2", "hyperoffload"},
                      Case{"dp:2 tp:2 sp zero2 bf16", "hyperoffload"},
                      Case{"dp:2 zero1", "hyperoffload", 0.6, "pool", true}),
    [](const auto& info) { return text(info.param); });

// A pool of exactly the needed size over two hosts, whose stages need unequal parts of it.
class OffloadAcrossHosts : public ::testing::TestWithParam<Case> {};

TEST_P(OffloadAcrossHosts, BytesOfThePoolOnAnotherHostAreTheSameBits) {
  Job job = moving(GetParam());
  const Plan plan = compile(job).plan;
  std::vector<Bytes> parts;
  for (int d = 0; d < job.supernode.devices; ++d) parts.push_back(plan.of_device(d).peak(Tier::kPool));
  job.supernode.pool = std::accumulate(parts.begin(), parts.end(), Bytes(0));
  const PoolPlacement placement =
      place_pool(Topology::uniform(2, job.supernode.devices / 2), job.supernode.pool, parts);
  ASSERT_TRUE(placement.spills());
  const RunOptions at_home{.hosts = 2, .thread_per_stream = GetParam().threads};
  RunOptions spread = at_home;
  spread.spread_pool = true;
  const RunResult kept = run_in_process(job, at_home), moved = run_in_process(job, spread);
  EXPECT_EQ(moved.losses, kept.losses);
  EXPECT_EQ(moved.grad_norms, kept.grad_norms);
  EXPECT_EQ(moved.weights, kept.weights);
  EXPECT_EQ(moved.moments, kept.moments);
  EXPECT_EQ(moved.pool_high_water, parts);
  EXPECT_EQ(moved.pool_high_water, kept.pool_high_water);
  for (std::size_t d = 0; d < parts.size(); ++d) {
    Bytes all{}, elsewhere{};
    for (const Traffic& t : moved.stats[d].traffic) {
      elsewhere += t.elsewhere;
      if (t.elsewhere.value > 0) all += t.bytes;
    }
    EXPECT_EQ(elsewhere.value > 0, placement.elsewhere(static_cast<int>(d)).value > 0) << d;
    EXPECT_LE(elsewhere, all) << d;
    for (const Traffic& t : kept.stats[d].traffic) EXPECT_EQ(t.elsewhere.value, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, OffloadAcrossHosts,
    ::testing::Values(Case{"pp:2", "hyperoffload"}, Case{"pp:2", "hyperoffload", 0.6, "pool", true},
                      Case{"pp:2 dp:2", "hyperoffload"},
                      Case{"pp:2 tp:2 sp zero_bubble", "hyperoffload", 0.6, "pool", true},
                      Case{"pp:2 dp:2", "reactive", 0.8, "pool", true}),
    [](const auto& info) { return text(info.param); });

// With a slow pool, cheap tensors are rematerialized.
class OffloadRematerialization : public ::testing::TestWithParam<Case> {};

TEST_P(OffloadRematerialization, GivesTheSameBitsWithinTheBudget) {
  Job job = moving(GetParam());
  job.supernode.pool_bandwidth = 1e6;
  job.memory.tensors = {"activations"};
  const Plan plan = compile(job).plan;
  ASSERT_LE(plan.peak(), job.supernode.hbm);
  const auto& origins = plan.roles.front().program("train").origins;
  const auto again = [](const std::string& origin) { return origin.ends_with(kMadeAgain); };
  ASSERT_GT(std::ranges::count_if(origins, again), 4);
  const RunResult kept = run_in_process(job_of(GetParam().parallel));
  const RunResult made = run_in_process(job, {.thread_per_stream = GetParam().threads});
  EXPECT_EQ(made.losses, kept.losses);
  EXPECT_EQ(made.grad_norms, kept.grad_norms);
  EXPECT_EQ(made.weights, kept.weights);
  EXPECT_EQ(made.moments, kept.moments);
  for (std::size_t d = 0; d < made.stats.size(); ++d)
    EXPECT_EQ(made.stats[d].high_water[0], plan.roles[plan.role_of(static_cast<std::int64_t>(d))].peak())
        << d;
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, OffloadRematerialization,
    ::testing::Values(Case{"dp:1", "hyperoffload", 0.9}, Case{"dp:1", "hyperoffload", 0.9, "pool", true},
                      Case{"tp:2 sp", "hyperoffload", 0.9}, Case{"dp:2 zero1", "hyperoffload", 0.9},
                      Case{"pp:2 dp:2", "hyperoffload", 0.9}, Case{"ring:4", "hyperoffload", 0.9},
                      Case{"tpx:2 tpy:2", "hyperoffload", 0.9},
                      Case{"dp:2 tp:2 sp zero2 bf16", "hyperoffload", 0.9}),
    [](const auto& info) { return text(info.param); });

// A device that computes slowly transfers as fast as others.
TEST(OffloadTransfers, OfASlowDeviceLastAsLong) {
  const Job job = moving({"dp:2", "hyperoffload"});
  const Plan plan = compile(job).plan;
  const Topology topology = hosts_of(machine_of(job.supernode), 2);
  const auto busy = [&](const SimOptions& options) {
    return simulate(plan, "train", job.supernode, topology, options).times(1).busy;
  };
  const auto even = busy({}), slow = busy({.slow = {{1, 2.0}}});
  EXPECT_EQ(slow[static_cast<std::size_t>(StreamKind::kCube)],
            even[static_cast<std::size_t>(StreamKind::kCube)] * 2);
  for (const StreamKind dma : {StreamKind::kDmaIn, StreamKind::kDmaOut}) {
    EXPECT_GT(even[static_cast<std::size_t>(dma)], Nanos(0));
    EXPECT_EQ(slow[static_cast<std::size_t>(dma)], even[static_cast<std::size_t>(dma)]);
  }
}

// Checkpoints include offloaded state and can be restored under another policy.
TEST(OffloadCheckpoint, IsTheSameFilesAndResumesUnderAnyPolicy) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "hyperrun-offload-test";
  std::filesystem::remove_all(folder);
  const RunResult whole = run_in_process(job_of("dp:2 zero1"));
  const Case policies[] = {{"dp:2 zero1", "hyperoffload"},
                           {"dp:2 zero1", "reactive"},
                           {"dp:2 zero1", "hyperoffload", 0.6, "flash"}};
  for (const Case& first : policies)
    for (const Case& second : policies) {
      const std::string path = (folder / (text(first) + text(second))).string();
      run_in_process(moving(first), {.save_to = path, .steps = 2});
      const RunResult resumed = run_in_process(moving(second), {.load_from = path, .first_step = 2});
      EXPECT_EQ(resumed.losses.back(), whole.losses.back());
      EXPECT_EQ(resumed.weights, whole.weights);
      EXPECT_EQ(resumed.moments, whole.moments);
    }
  std::filesystem::remove_all(folder);
}

TEST(OffloadBudget, APoolThatIsTooSmallIsRefused) {
  Job job = moving({"dp:2 zero1", "hyperoffload"});
  const Plan plan = compile(job).plan;
  job.supernode.pool = plan.of_all_devices(Tier::kPool);
  EXPECT_NO_THROW(check_fits(plan, job.supernode));
  job.supernode.pool -= Bytes(1);
  try {
    check_fits(plan, job.supernode);
    FAIL() << "it does not fit";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDoesNotFit);
    EXPECT_EQ(e.place(), "supernode.pool");
  }
}

TEST(OffloadBudget, AJobThatFitsMovesNothing) {
  Job job = moving({"dp:1", "hyperoffload"});
  job.supernode.hbm = kGiB;
  EXPECT_FALSE(moves(compile(job).plan));
}

TEST(OffloadGeneration, GivesTheSameTokens) {
  Job kept = job_of("tp:2 sp");
  kept.run.generate.tokens = 5;
  Job job = moving({"tp:2 sp", "hyperoffload"});
  job.run.generate.tokens = 5;
  ASSERT_TRUE(moves(compile(job).plan));
  EXPECT_EQ(run_in_process(job).tokens, run_in_process(kept).tokens);
}

// The cache of a generation job lies in the pool or on flash and is fetched layer by layer.
TEST(OffloadGeneration, OfACacheBeyondHbmGivesTheSameTokens) {
  const TemporaryDirectory tmp;
  Job job = job_of("dp:2");
  job.training.steps = 1;
  job.run.generate.tokens = 5;
  job.inference.slots = 4;
  job.inference.context = 256;
  run_in_process(job, {.save_to = (tmp / "weights").string()});
  RunOptions options{.load_from = (tmp / "weights").string()};
  options.only_generates = true;
  options.prompts = {
      {5, 6, 7}, std::vector<std::int32_t>(200, 9), {1}, {4, 4}, std::vector<std::int32_t>(90, 17)};
  const auto kept = run_in_process(job, options).grown;
  EXPECT_EQ(kept.size(), 5U);
  const Bytes all = compile_generation(job).plan.peak();
  for (const std::string policy : {"hyperoffload", "reactive"})
    for (const std::string tier : {"pool", "flash"}) {
      Job moves_cache = job;
      moves_cache.memory = {policy, tier, {"cache"}};
      moves_cache.supernode.pool = moves_cache.supernode.flash = kGiB;
      moves_cache.supernode.hbm = Bytes(all.value / 4 * 3);
      const Plan plan = compile_generation(moves_cache).plan;
      ASSERT_LE(plan.peak(), moves_cache.supernode.hbm) << policy << " " << tier;
      EXPECT_GT(plan.peak(tier == "pool" ? Tier::kPool : Tier::kFlash), Bytes(0));
      const RunResult moved = run_in_process(moves_cache, options);
      EXPECT_EQ(moved.grown, kept) << policy << " " << tier;
      for (const Bytes peak : moved.high_water) EXPECT_EQ(peak, plan.peak()) << policy << " " << tier;
    }
}

}  // namespace
}  // namespace hyperrun::testing

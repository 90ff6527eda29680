// Paired passes: their order, and the results, peaks and times of steps with them.
#include "runtime/mpmd/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runtime/compile/compile.h"
#include "runtime/sim/simulate.h"
#include "tests/mpmd/tile_runs.h"
#include "tests/support/faults.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

Job pairs_job(const std::string& parallel, bool paired) {
  Job job = small_job(parallel);
  job.training.batch = 16;
  job.training.micro_batches = 4;
  job.training.steps = 4;
  job.parallel.paired_passes = paired;
  return job;
}

// A job whose exchanges take a good part of the time of computing, or more.
Job slow_links(const std::string& parallel, bool paired) {
  return with_slow_links(pairs_job(parallel, paired), 3e7);
}

// The names of its instructions in order, by micro-batch.
std::map<std::string, std::vector<std::string>> of_micro_batches(const Program& program) {
  std::map<std::string, std::vector<std::string>> names;
  for (const Instr& instr : program.instrs) {
    const std::string& origin = program.origins[static_cast<std::size_t>(instr.origin)];
    if (const std::size_t mark = origin.find('#'); mark != std::string::npos)
      names[origin.substr(mark)].push_back(origin);
  }
  return names;
}

TEST(Pairs, EachPassKeepsItsOrder) {
  for (const char* layout : {"tp:4", "dp:2 tp:2 sp zero1", "tpx:2 tpy:2"}) {
    const Program single = train(slow_links(layout, false)), paired = train(slow_links(layout, true));
    EXPECT_EQ(fault(paired), "");
    EXPECT_EQ(single.instrs.size(), paired.instrs.size());
    EXPECT_EQ(of_micro_batches(single), of_micro_batches(paired)) << layout;
  }
}

// Neither pass has ended when the other begins.
TEST(Pairs, AreMixed) {
  const Program program = train(slow_links("tp:4", true));
  int changes = 0;
  std::string last;
  for (const Instr& instr : program.instrs) {
    const std::string& origin = program.origins[static_cast<std::size_t>(instr.origin)];
    const std::string own = origin.substr(std::min(origin.size(), origin.find('#')));
    if (!own.empty() && !last.empty() && own != last) ++changes;
    if (!own.empty()) last = own;
    EXPECT_EQ(instr.half, -1);
  }
  EXPECT_GT(changes, 60);
}

Nanos step_time(const Job& job) {
  const Plan plan = compile(job).plan;
  return simulate(plan, "train", job.supernode, Topology::one_host(static_cast<int>(plan.mesh.devices())))
      .makespan;
}

// An all-reduce overlaps with the products of the other pass.
TEST(Pairs, AreShorterWhereExchangesWereExposed) {
  for (const char* layout : {"tp:4", "tp:4 sp", "ep:4", "pp:2 tp:2"}) {
    Job job = slow_links(layout, false);
    if (std::string(layout) == "ep:4") job.model.experts = {.count = 8, .choices = 2, .ffn = 32, .shared = 1};
    job.training.batch = 32;
    job.training.micro_batches = 8;
    const Nanos single = step_time(job);
    job.parallel.paired_passes = true;
    const Nanos paired = step_time(job);
    EXPECT_LT(static_cast<double>(paired.value), 0.95 * static_cast<double>(single.value)) << layout;
  }
}

// Some collectives of experts start in an earlier pass than their own, and some sums complete in a later one.
// Neither extends a pair to other passes, which stages would have to wait for.
TEST(Pairs, HaveOnlyTheirOwnPasses) {
  for (const char* layout : {"pp:2 ep:2 interleaved chunks:2", "pp:2 tp:2 sp"})
    for (const std::int32_t tiles : {1, 4}) {
      Job job = pairs_job(layout, true);
      job.model.experts = {.count = 8, .choices = 2, .ffn = 32, .shared = 1, .aux_loss = 0.01};
      job.training.batch = 24;
      job.training.micro_batches = job.parallel.pipeline.chunks > 1 ? 4 : 6;
      job.parallel.tiles = tiles;
      set_layers(job, 4);
      EXPECT_NO_THROW((void)compile(job)) << layout << " tiles " << tiles;
    }
}

class PairsInLayouts : public ::testing::TestWithParam<const char*> {};

// In all these layouts sums are added in the same order.
TEST_P(PairsInLayouts, ComputeTheSameBits) {
  const RunResult single = run_in_process(pairs_job(GetParam(), false));
  const RunResult paired = run_in_process(pairs_job(GetParam(), true));
  EXPECT_LT(single.losses.back(), single.losses.front());
  EXPECT_EQ(single.losses, paired.losses);
  EXPECT_EQ(single.weights, paired.weights);
  EXPECT_TRUE(paired.strays.empty());
}

INSTANTIATE_TEST_SUITE_P(Layouts, PairsInLayouts,
                         ::testing::Values("dp:1", "dp:2", "tp:4", "tp:4 sp", "dp:2 tp:2 sp zero1",
                                           "dp:2 tp:2 zero3", "tpx:2 tpy:2", "cp:4", "ring:2", "ep:4", "pp:2",
                                           "pp:2 tp:2 sp", "pp:4"),
                         [](const auto& info) { return test_title(info.param); });

TEST(PairsRun, WorkWithOtherSchedules) {
  const auto check = [](const std::string& what, const auto& change) {
    Job job = pairs_job("pp:2 dp:2", false);
    change(job);
    set_layers(job, 4);
    const RunResult single = run_in_process(job);
    job.parallel.paired_passes = true;
    const RunResult paired = run_in_process(job);
    EXPECT_EQ(single.losses, paired.losses) << what;
    EXPECT_EQ(single.weights, paired.weights) << what;
  };
  check("interleaved",
        [](Job& j) { j.parallel = pairs_job("pp:2 dp:2 interleaved chunks:2", false).parallel; });
  check("zero bubble", [](Job& j) { j.parallel.pipeline.schedule = "zero_bubble"; });
  check("full recomputation", [](Job& j) { j.training.recompute = {{"full", 0, j.model.layers - 1}}; });
  check("selective", [](Job& j) { j.training.recompute = {{"selective", 0, j.model.layers - 1}}; });
  check("bfloat16", [](Job& j) { j.training.precision = std::string(kBfloat16); });
  check("updates amid the backward pass", [](Job& j) { j.training.clip_norm = 0; });
}

TEST(PairsRun, WorkWithOffloading) { expect_same_in_half_of_hbm(pairs_job("tp:2", true)); }

// Less has to be hidden beside another pass, so other collectives are cut. A library may sum products of
// fewer rows in another order, as OpenBLAS does on processors without AVX-512: then last bits differ.
TEST(PairsRun, WorkBesideTiles) {
  Job job = pairs_job("ep:2 tp:2 sp", false);
  job.model.experts = {.count = 8, .choices = 3, .ffn = 40, .shared = 1, .aux_loss = 0.01};
  job.parallel.tiles = 3;
  const RunResult single = run_in_process(job);
  job.parallel.paired_passes = true;
  const RunResult paired = run_in_process(job);
  ASSERT_EQ(single.losses.size(), paired.losses.size());
  for (std::size_t s = 0; s < single.losses.size(); ++s)
    EXPECT_NEAR(single.losses[s], paired.losses[s], 1e-5 * single.losses[s]) << "step " << s;
  for (const auto& [name, weight] : single.weights)
    EXPECT_LT(relative(weight, paired.weights.at(name)), 1e-5) << name;
}

TEST(PairsRun, WorkByMessagesAndWithThreads) {
  const RunResult single = run_in_process(pairs_job("pp:2 tp:2", false));
  for (const bool threads : {false, true}) {
    RunOptions options;
    options.thread_per_stream = threads;
    options.hosts = 2;
    EXPECT_EQ(run_in_process(pairs_job("pp:2 tp:2", true), options).losses, single.losses) << threads;
  }
}

}  // namespace
}  // namespace hyperrun::testing

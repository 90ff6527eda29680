// Executed steps with experts in tiles give the results of steps without tiles.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/mpmd/tile_runs.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

Job experts_job(const std::string& parallel, std::int32_t tiles) {
  Job job = small_job(parallel);
  job.model.experts = {.count = 8, .choices = 3, .ffn = 40, .shared = 1, .aux_loss = 0.01};
  job.parallel.tiles = tiles;
  job.training.steps = 6;
  return job;
}

class ExpertTilesInLayouts : public ::testing::TestWithParam<const char*> {};

TEST_P(ExpertTilesInLayouts, GiveTheSameResults) {
  const RunResult whole = run_in_process(experts_job(GetParam(), 1));
  EXPECT_LT(whole.losses.back(), whole.losses.front());
  for (const std::int32_t tiles : {2, 3, 8}) {
    const RunResult cut = run_in_process(experts_job(GetParam(), tiles));
    expect_same(whole, cut, "tiles " + std::to_string(tiles));
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ExpertTilesInLayouts,
                         ::testing::Values("ep:2", "ep:4", "ep:8", "dp:2 ep:2 zero1", "ep:2 tp:2 sp",
                                           "ep:2 tp:2 sp etp", "pp:2 ep:2", "dp:2 ep:2 zero3"),
                         [](const auto& info) { return test_title(info.param); });

// Compares the gradients of the first step. A library sums products of fewer rows in another order, so the
// last bits differ.
TEST(ExpertTilesRun, GivesTheSameGradients) {
  Job job = experts_job("ep:4", 1);
  job.training.steps = 1;
  job.training.clip_norm = 0;
  const RunResult whole = run_in_process(job);
  job.parallel.tiles = 4;
  const RunResult cut = run_in_process(job);
  EXPECT_GT(whole.moments.size(), 40U);
  for (const auto& [name, moment] : whole.moments)
    EXPECT_LT(relative(moment, cut.moments.at(name)), 2e-6) << name;
}

TEST(ExpertTilesRun, WorksWithOtherSchedulesAndFormats) {
  const auto check = [](const std::string& what, const auto& change) {
    Job job = experts_job("ep:4", 1);
    change(job);
    const RunResult whole = run_in_process(job);
    job.parallel.tiles = 4;
    const RunResult cut = run_in_process(job);
    ASSERT_EQ(whole.losses.size(), cut.losses.size());
    // bfloat16 rounding amplifies differences in the last bits of gradients.
    const double allowed = job.training.precision == kBfloat16 ? 2e-3 : 1e-5;
    for (std::size_t s = 0; s < whole.losses.size(); ++s)
      EXPECT_NEAR(whole.losses[s], cut.losses[s], allowed * whole.losses[s]) << what << " step " << s;
  };
  check("recomputation", [](Job& j) { j.training.recompute = {{"full", 0, j.model.layers - 1}}; });
  check("selective", [](Job& j) { j.training.recompute = {{"selective", 0, j.model.layers - 1}}; });
  check("micro-batches", [](Job& j) { j.training.micro_batches = 2; });
  check("bfloat16", [](Job& j) { j.training.precision = std::string(kBfloat16); });
  check("capacity", [](Job& j) { j.model.experts.capacity.factor = 0.75; });
  check("experts over two axes", [](Job& j) {
    j.parallel.mesh = {{"dp", 2}, {"tp", 2}};
    j.parallel.presets = {"dp", "tp", "sp"};
    for (const char* matrix : {"gate", "up", "down"})
      j.parallel.rules.push_back(
          {std::string("layers.*.experts.") + matrix, {{"experts", {"dp", "tp"}}}, "rules"});
  });
}

// Offloading to half of the HBM; tiles write parts of offloaded buffers.
TEST(ExpertTilesRun, WorksWithOffloading) {
  const Plan plan = expect_same_in_half_of_hbm(experts_job("ep:4", 4));
  const Program& program = plan.roles[0].program("train");
  std::set<std::int32_t> in_tiles;
  for (const Instr& i : program.instrs)
    if (const Tier tier = beyond_hbm(i.op); tier == Tier::kHbm && !tile_of(i).whole())
      in_tiles.insert(i.in[0].buffer.value);
  std::int64_t stored = 0;
  for (const Instr& i : program.instrs)
    if (std::holds_alternative<instr::Store>(i.op)) stored += in_tiles.contains(i.in[0].buffer.value) ? 1 : 0;
  EXPECT_GT(stored, 0) << "or the test shows nothing";
}

TEST(ExpertTilesRun, WorksByMessagesAndWithThreads) {
  const RunResult whole = run_in_process(experts_job("ep:4", 1));
  RunOptions options;
  options.thread_per_stream = true;
  expect_same(whole, run_in_process(experts_job("ep:4", 3), options), "threads");
  options.hosts = 2;
  expect_same(whole, run_in_process(experts_job("ep:4", 3), options), "two hosts, threads");
  options.thread_per_stream = false;
  expect_same(whole, run_in_process(experts_job("ep:4", 3), options), "two hosts");
}

// More tiles than rows that some devices send each other, so some tiles are empty.
TEST(ExpertTilesRun, WorksWithMoreTilesThanRows) {
  Job job = experts_job("ep:4", 1);
  job.training.batch = 4;
  job.model.sequence = 4;
  const RunResult whole = run_in_process(job);
  job.parallel.tiles = 64;
  const RunResult cut = run_in_process(job);
  EXPECT_NEAR(whole.losses[0], cut.losses[0], 1e-6 * whole.losses[0]);
  EXPECT_NEAR(whole.losses.back(), cut.losses.back(), 1e-5 * whole.losses.back());
}

// Peaks are as planned, and all tiles together exchange the same bytes.
TEST(ExpertTilesRun, TrafficAndPeaksAreAsPlanned) {
  expect_as_planned(
      experts_job("ep:4", 4), [](const Traffic& whole, const Traffic& cut, const std::string& what) {
        const bool in_tiles = what == "all-to-all-v";
        EXPECT_EQ(cut.count, in_tiles ? 4 * whole.count : whole.count);
        // A difference in a last bit may have changed the routing of a token in the last step.
        EXPECT_NEAR(static_cast<double>(cut.bytes.value), static_cast<double>(whole.bytes.value),
                    in_tiles ? 0.01 * static_cast<double>(whole.bytes.value) : 0.0);
      });
}

}  // namespace
}  // namespace hyperrun::testing

// Executed steps with collectives and their products in tiles give the results of steps without tiles.
#include <gtest/gtest.h>

#include <string>

#include "tests/mpmd/tile_runs.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

Job tiled_job(const std::string& parallel, std::int32_t tiles) {
  Job job = small_job(parallel);
  job.parallel.tiles = tiles;
  job.training.steps = 5;
  return job;
}

class CollectiveTilesInLayouts : public ::testing::TestWithParam<const char*> {};

TEST_P(CollectiveTilesInLayouts, GiveTheSameResults) {
  const RunResult whole = run_in_process(tiled_job(GetParam(), 1));
  EXPECT_LT(whole.losses.back(), whole.losses.front());
  for (const std::int32_t tiles : {2, 3})
    expect_same(whole, run_in_process(tiled_job(GetParam(), tiles)), "tiles " + std::to_string(tiles));
}

INSTANTIATE_TEST_SUITE_P(Layouts, CollectiveTilesInLayouts,
                         ::testing::Values("tp:2", "tp:4", "tp:2 sp", "tp:4 sp", "dp:2 tp:2",
                                           "dp:2 tp:2 sp zero1", "dp:2 tp:2 sp zero3", "tpx:2 tpy:2", "cp:2",
                                           "cp:4", "cp:2 tp:2 sp", "pp:2 tp:2 sp"),
                         [](const auto& info) { return test_title(info.param); });

// Compares all gradients of the first step.
TEST(CollectiveTilesRun, GivesTheSameGradients) {
  for (const char* layout : {"tp:4", "tp:4 sp", "tpx:2 tpy:2", "cp:4"}) {
    Job job = tiled_job(layout, 1);
    job.training.steps = 1;
    job.training.clip_norm = 0;
    const RunResult whole = run_in_process(job);
    job.parallel.tiles = 4;
    const RunResult cut = run_in_process(job);
    EXPECT_GT(whole.moments.size(), 15U);
    for (const auto& [name, moment] : whole.moments)
      EXPECT_LT(relative(moment, cut.moments.at(name)), 2e-6) << layout << " " << name;
  }
}

TEST(CollectiveTilesRun, WorksWithOtherSchedulesFormatsAndModels) {
  const auto check = [](const std::string& what, const auto& change) {
    for (const char* layout : {"tp:2", "tp:2 sp"}) {
      Job job = tiled_job(layout, 1);
      change(job);
      const RunResult whole = run_in_process(job);
      job.parallel.tiles = 4;
      expect_same(whole, run_in_process(job), what + " " + layout,
                  job.training.precision == kBfloat16 ? 2e-3 : 1e-5);
    }
  };
  check("recomputation", [](Job& j) { j.training.recompute = {{"full", 0, j.model.layers - 1}}; });
  check("selective", [](Job& j) { j.training.recompute = {{"selective", 0, j.model.layers - 1}}; });
  check("micro-batches", [](Job& j) { j.training.micro_batches = 2; });
  check("one sequence", [](Job& j) { j.training.micro_batches = j.training.batch; });
  check("bfloat16", [](Job& j) { j.training.precision = std::string(kBfloat16); });
  check("gpt2", become_gpt2);
}

// The first stage leaves a partial sum to the second, which has all layers. It is summed where it is used, so
// the stages do not wait for each other's messages in a circle.
TEST(CollectiveTilesRun, AStageSumsWhatItReceives) {
  Job job = tiled_job("pp:2 tp:2", 1);
  job.training.micro_batches = 4;
  job.parallel.pipeline.stages = {{0, 0}, {1, job.model.layers}};
  const RunResult whole = run_in_process(job);
  job.parallel.tiles = 4;
  expect_same(whole, run_in_process(job), "tiles");
}

// Rows of experts and other rows are tiled in one Program.
TEST(CollectiveTilesRun, WorksBesideExpertTiles) {
  Job job = tiled_job("ep:2 tp:2 sp", 1);
  job.model.experts = {.count = 8, .choices = 3, .ffn = 40, .shared = 1, .aux_loss = 0.01};
  const RunResult whole = run_in_process(job);
  job.parallel.tiles = 3;
  expect_same(whole, run_in_process(job), "experts");
}

TEST(CollectiveTilesRun, WorksByMessagesAndWithThreads) {
  for (const char* layout : {"tp:4", "tp:4 sp", "tpx:2 tpy:2", "cp:4"}) {
    const RunResult whole = run_in_process(tiled_job(layout, 1));
    RunOptions options;
    options.thread_per_stream = true;
    expect_same(whole, run_in_process(tiled_job(layout, 3), options), std::string(layout) + ", threads");
    options.hosts = 2;
    expect_same(whole, run_in_process(tiled_job(layout, 3), options),
                std::string(layout) + ", two hosts, threads");
    options.thread_per_stream = false;
    expect_same(whole, run_in_process(tiled_job(layout, 3), options), std::string(layout) + ", two hosts");
  }
}

// Offloading to half of the HBM.
TEST(CollectiveTilesRun, WorksWithOffloading) { (void)expect_same_in_half_of_hbm(tiled_job("tp:4 sp", 4)); }

// Peaks are as planned, and all tiles together exchange the same bytes.
TEST(CollectiveTilesRun, TrafficAndPeaksAreAsPlanned) {
  for (const char* layout : {"tp:4", "tp:4 sp", "tpx:2 tpy:2", "cp:4"}) {
    expect_as_planned(tiled_job(layout, 4),
                      [&](const Traffic& whole, const Traffic& cut, const std::string& what) {
                        EXPECT_EQ(cut.bytes, whole.bytes) << layout << " " << what;
                      });
  }
}

}  // namespace
}  // namespace hyperrun::testing

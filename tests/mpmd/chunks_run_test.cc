// Steps with collectives beside their products in tiles, executed: they are what they are without.
#include <gtest/gtest.h>

#include <string>

#include "tests/mpmd/tile_runs.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

Job chunks_job(const std::string& parallel, std::int32_t tiles) {
  Job job = small_job(parallel);
  job.parallel.tiles = tiles;
  job.training.steps = 5;
  return job;
}

class ChunksInLayouts : public ::testing::TestWithParam<const char*> {};

TEST_P(ChunksInLayouts, ComputeWhatTheWholeDoes) {
  const RunResult whole = run_in_process(chunks_job(GetParam(), 1));
  EXPECT_LT(whole.losses.back(), whole.losses.front());
  for (const std::int32_t tiles : {2, 3})
    expect_same(whole, run_in_process(chunks_job(GetParam(), tiles)), "tiles " + std::to_string(tiles));
}

INSTANTIATE_TEST_SUITE_P(Layouts, ChunksInLayouts,
                         ::testing::Values("tp:2", "tp:4", "tp:2 sp", "tp:4 sp", "dp:2 tp:2",
                                           "dp:2 tp:2 sp zero1", "dp:2 tp:2 sp zero3", "tpx:2 tpy:2", "cp:2",
                                           "cp:4", "cp:2 tp:2 sp", "pp:2 tp:2 sp"),
                         [](const auto& info) { return test_title(info.param); });

// Of the first step, all of them.
TEST(ChunksRun, GradientsAreThoseOfTheWhole) {
  for (const char* layout : {"tp:4", "tp:4 sp", "tpx:2 tpy:2", "cp:4"}) {
    Job job = chunks_job(layout, 1);
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

TEST(ChunksRun, KeepToOtherSchedulesFormatsAndModels) {
  const auto check = [](const std::string& what, const auto& change) {
    for (const char* layout : {"tp:2", "tp:2 sp"}) {
      Job job = chunks_job(layout, 1);
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

// A sum that the first stage leaves to the second, which has all layers, is made when it is used: no stage
// waits for a message amid what the other waits for.
TEST(ChunksRun, OfAStageThatSumsWhatItReceives) {
  Job job = chunks_job("pp:2 tp:2", 1);
  job.training.micro_batches = 4;
  job.parallel.pipeline.stages = {{0, 0}, {1, job.model.layers}};
  const RunResult whole = run_in_process(job);
  job.parallel.tiles = 4;
  expect_same(whole, run_in_process(job), "tiles");
}

// Experts' rows and others in one Program.
TEST(ChunksRun, BesideTilesOfExperts) {
  Job job = chunks_job("ep:2 tp:2 sp", 1);
  job.model.experts = {.count = 8, .choices = 3, .ffn = 40, .shared = 1, .aux_loss = 0.01};
  const RunResult whole = run_in_process(job);
  job.parallel.tiles = 3;
  expect_same(whole, run_in_process(job), "experts");
}

TEST(ChunksRun, ByMessagesAndWithThreads) {
  for (const char* layout : {"tp:4", "tp:4 sp", "tpx:2 tpy:2", "cp:4"}) {
    const RunResult whole = run_in_process(chunks_job(layout, 1));
    RunOptions options;
    options.thread_per_stream = true;
    expect_same(whole, run_in_process(chunks_job(layout, 3), options), std::string(layout) + ", threads");
    options.hosts = 2;
    expect_same(whole, run_in_process(chunks_job(layout, 3), options),
                std::string(layout) + ", two hosts, threads");
    options.thread_per_stream = false;
    expect_same(whole, run_in_process(chunks_job(layout, 3), options), std::string(layout) + ", two hosts");
  }
}

// In half of the memory.
TEST(ChunksRun, MoveBeyondHbm) { (void)expect_same_in_half_of_hbm(chunks_job("tp:4 sp", 4)); }

// Peaks are as planned, and bytes that are exchanged are the same in all tiles together.
TEST(ChunksRun, MoveAndHoldWhatIsPlanned) {
  for (const char* layout : {"tp:4", "tp:4 sp", "tpx:2 tpy:2", "cp:4"}) {
    expect_as_planned(chunks_job(layout, 4),
                      [&](const Traffic& whole, const Traffic& cut, const std::string& what) {
                        EXPECT_EQ(cut.bytes, whole.bytes) << layout << " " << what;
                      });
  }
}

}  // namespace
}  // namespace hyperrun::testing

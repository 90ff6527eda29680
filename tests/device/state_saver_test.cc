// Saving beside the steps: the files are those of a save that stops them, and copies in memory are whole
// checkpoints.
#include "runtime/device/state_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/compile/compile.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using Return = StateSaver::Return;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kSteps = 5;

// All files in a folder, by name.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename()] = content(entry.path());
  return files;
}

// A job part of whose state is in the pool.
Job with_pool(const std::string& parallel) {
  Job job = small_job(parallel);
  set_layers(job, 4);
  job.supernode.hbm = Bytes(compile(job).plan.peak().value * 6 / 10);
  job.supernode.pool = Bytes(std::int64_t{1} << 30);
  job.memory.policy = "hyperoffload";
  job.memory.tier = "pool";
  return job;
}

class Saver : public ::testing::Test {
 protected:
  // Makes savers for a run, with `use` called after each step.
  using Use = std::function<void(StateSaver& saver, const StateContext& context, std::int64_t step)>;
  RunOptions options(const Use& use, bool keeps_copies = false, KeptCheckpoints kept = {}) {
    RunOptions run;
    run.beside_steps = [=, this](const StateContext& context) {
      const SaverOptions with{.copies = copies(),
                              .keeps_copies = keeps_copies,
                              .kept = kept,
                              .warn = [this](const std::string& problem) {
                                const std::lock_guard guard(mutex_);
                                warnings_.push_back(problem);
                              }};
      const auto saver = std::make_shared<StateSaver>(context, with);
      return [=](std::int64_t step) { use(*saver, context, step + 1); };
    };
    return run;
  }
  static Unsplit unsplit(std::int64_t step) {
    return {.trainer = {.next_step = step, .seed = 7}, .files = {{"config.json", "{}"}}};
  }
  fs::path shm() const { return directory_ / "shm"; }
  fs::path copies() const { return copies_folder("/run", "", shm()); }
  fs::path disk(std::int64_t step) const { return directory_ / "checkpoints" / checkpoint_name(step); }
  std::vector<std::string> names(const fs::path& folder) const {
    std::vector<std::string> all;
    if (fs::exists(folder))
      for (const auto& entry : fs::directory_iterator(folder)) all.push_back(entry.path().filename());
    std::ranges::sort(all);
    return all;
  }
  // How many checkpoints are told to be missing.
  std::ptrdiff_t told() {
    const std::lock_guard guard(mutex_);
    return std::ranges::count_if(warnings_, [](const std::string& warning) {
      return warning.find("not saved, the run goes on") != std::string::npos;
    });
  }
  void SetUp() override { fs::create_directories(shm()); }

  TemporaryDirectory directory_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

// Each step is saved twice: first with a stop, then beside the next step, which changes all of the state.
TEST_F(Saver, WritesWhatAStopWouldHaveWritten) {
  const auto deepseek = [](Job job) {
    become_deepseek(job);
    return job;
  };
  const std::vector<std::pair<Job, int>> jobs{{small_job("dp:2 tp:2 sp zero1"), 1},
                                              {small_job("dp:2 tp:2 zero3"), 2},
                                              {small_job("pp:2 tp:2 bf16"), 1},
                                              {deepseek(small_job("ep:2 tp:2 sp")), 4},
                                              {with_pool("dp:2 zero1"), 1},
                                              {with_pool("tp:2 sp"), 2},
                                              {small_job("dp:1"), 1}};
  for (const auto& [base, hosts] : jobs) {
    Job job = base;
    job.training.steps = kSteps;
    RunOptions run = options([&](StateSaver& saver, const StateContext& context, std::int64_t step) {
      save_state(context, directory_ / "stopped" / checkpoint_name(step), unsplit(step));
      saver.save({disk(step)}, unsplit(step), step == kSteps ? Return::kOnceWritten : Return::kOnceCopied);
    });
    run.hosts = hosts;
    run_in_process(job, run);
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      const auto beside = contents(disk(step));
      EXPECT_EQ(beside.size(), 4U);
      EXPECT_TRUE(beside == contents(directory_ / "stopped" / checkpoint_name(step)))
          << step << " of " << hosts << " hosts";
    }
    EXPECT_THAT(warnings_, ElementsAre());
    EXPECT_THAT(names(shm()), ElementsAre());
    EXPECT_EQ(names(directory_ / "checkpoints").size(), static_cast<std::size_t>(kSteps)) << "and no part";
  }
}

// A part of a checkpoint that another program has begun: nothing but its own files is written, and nothing is
// removed.
TEST_F(Saver, WritesAPartInPlace) {
  for (const auto& [words, hosts] : {std::pair{"dp:2 tp:2 sp zero1", 1}, {"pp:2 tp:2", 2}}) {
    Job job = small_job(words);
    job.training.steps = kSteps;
    RunOptions run = options(
        [&](StateSaver& saver, const StateContext& context, std::int64_t step) {
          save_part(context, directory_ / "stopped" / checkpoint_name(step), unsplit(step));
          saver.save({disk(step) / "text", true}, unsplit(step),
                     step == kSteps ? Return::kOnceWritten : Return::kOnceCopied);
          EXPECT_EQ(saver.written(), "");
        },
        false, {.last = 1});
    run.hosts = hosts;
    run_in_process(job, run);
    for (std::int64_t step = 1; step <= kSteps; ++step)
      EXPECT_TRUE(contents(disk(step) / "text") == contents(directory_ / "stopped" / checkpoint_name(step)))
          << step << " of " << hosts << " hosts";
    EXPECT_THAT(warnings_, ElementsAre());
  }
}

TEST_F(Saver, TellsWhyAPartIsMissing) {
  Job job = small_job(2, 1);
  job.training.steps = 3;
  fs::create_directories(disk(2));
  std::ofstream(disk(2) / "text") << "a file in the folder's place";
  std::map<std::int64_t, std::string> problems;
  run_in_process(job, options([&](StateSaver& saver, const StateContext& context, std::int64_t step) {
                   saver.save({disk(step) / "text", true}, unsplit(step), Return::kOnceCopied,
                              step == 1 ? "no space" : "");
                   const std::string problem = saver.written();
                   if (context.world.device() == 0) problems[step] = problem;
                 }));
  EXPECT_EQ(problems[1], "no space");
  EXPECT_THAT(problems[2], HasSubstr("Not a directory"));
  EXPECT_EQ(problems[3], "");
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(Saver, KeepsTheCheckpointsThatItShall) {
  Job job = small_job(2, 1);
  job.training.steps = kSteps;
  run_in_process(
      job, options([&](StateSaver& saver, const StateContext&,
                       std::int64_t step) { saver.save({disk(step)}, unsplit(step), Return::kOnceWritten); },
                   false, {.last = 1, .every = 2}));
  EXPECT_THAT(names(directory_ / "checkpoints"), ElementsAre("step-000002", "step-000004", "step-000005"));
}

// The last two copies are whole while the process lives; the folder stays as long as the run holds it.
TEST_F(Saver, ACopyIsACheckpoint) {
  const CopiesFolder held(copies(), CopiesFolder::AtEnd::kRemove);
  Job job = small_job(2, 2);
  job.training.steps = kSteps;
  const auto copy = [&](StateSaver& saver, const StateContext& context, std::int64_t step) {
    save_state(context, disk(step), unsplit(step));
    saver.copy(unsplit(step));
  };
  for (int process = 0; process < 2; ++process) {  // the second takes over the folder of the first
    fs::create_directories(held.checkpoints() / ".slot-1.partial/left");
    run_in_process(job, options(copy, true));
    EXPECT_THAT(names(held.checkpoints()), ElementsAre("step-000004", "step-000005"));
    for (std::int64_t step : {4, 5})
      EXPECT_TRUE(contents(held.checkpoints() / checkpoint_name(step)) == contents(disk(step))) << step;
  }
  EXPECT_THAT(warnings_, ElementsAre());
}

// A save fills a copy's slot as well, and copies go on while it is written.
TEST_F(Saver, ASaveIsACopyToo) {
  const CopiesFolder held(copies(), CopiesFolder::AtEnd::kRemove);
  Job job = small_job(2, 1);
  job.training.steps = kSteps;
  run_in_process(job, options(
                          [&](StateSaver& saver, const StateContext&, std::int64_t step) {
                            if (step % 2 == 0) return saver.copy(unsplit(step));
                            saver.save({disk(step)}, unsplit(step), Return::kOnceCopied);
                          },
                          true));
  EXPECT_TRUE(contents(held.checkpoints() / checkpoint_name(5)) == contents(disk(5)));
  EXPECT_THAT(names(directory_ / "checkpoints"), ElementsAre("step-000001", "step-000003", "step-000005"));
}

// Without memory for copies a save stops the steps, which is told once.
TEST_F(Saver, WithoutMemoryItStopsTheSteps) {
  fs::remove(shm());
  std::ofstream(shm()) << "no folder";
  Job job = small_job(2, 2);
  job.training.steps = kSteps;
  run_in_process(job, options([&](StateSaver& saver, const StateContext& context, std::int64_t step) {
                   save_state(context, directory_ / "stopped" / checkpoint_name(step), unsplit(step));
                   saver.save({disk(step)}, unsplit(step), Return::kOnceCopied);
                   saver.copy(unsplit(step));
                 }));
  for (std::int64_t step = 1; step <= kSteps; ++step)
    EXPECT_TRUE(contents(disk(step)) == contents(directory_ / "stopped" / checkpoint_name(step)));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("every save stops the steps"));
}

// A disk that fails for a while costs checkpoints and not the run, unless the last one fails.
TEST_F(Saver, AFailureToWriteIsTold) {
  for (const bool memory : {true, false}) {
    warnings_.clear();
    fs::remove_all(directory_ / "checkpoints");
    fs::remove_all(shm());
    if (memory) fs::create_directories(shm());
    std::ofstream(directory_ / "checkpoints") << "no folder";
    Job job = small_job(2, 1);
    job.training.steps = kSteps;
    const auto use = [&](bool last_fails) {
      return options([=, this](StateSaver& saver, const StateContext& context, std::int64_t step) {
        if (context.world.device() == 0 && step == kSteps && !last_fails) {
          while (told() < kSteps - 1) std::this_thread::yield();  // the writer of the step before
          fs::remove(directory_ / "checkpoints");
        }
        saver.save({disk(step)}, unsplit(step), step == kSteps ? Return::kOnceWritten : Return::kOnceCopied);
      });
    };
    EXPECT_THROW(run_in_process(job, use(true)), Error);
    warnings_.clear();
    EXPECT_NO_THROW(run_in_process(job, use(false)));
    EXPECT_EQ(told(), kSteps - 1);
    EXPECT_THAT(names(directory_ / "checkpoints"), ElementsAre("step-000005"));
  }
}

}  // namespace
}  // namespace hyperrun::testing

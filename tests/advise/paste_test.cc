// A remedy's lines, pasted into the job, make the job that the remedy describes.
#include "runtime/advise/paste.h"

#include <gtest/gtest.h>

#include "runtime/advise/fit_changes.h"
#include "runtime/compile/compile.h"
#include "runtime/spec/job_check.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/advise/pasting.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

LoadedJob written(Job job) {
  job.name = "job";
  job.data.corpus = "/corpus.txt";
  return parse_job(to_textproto(job), "job.textproto");
}

Job read(const std::string& text) {
  Job job = parse_job(text, "job.textproto").job;
  for (ShardRule& rule : job.parallel.rules) rule.origin.clear();  // the place in the file
  return job;
}

// False if the job is illegal; such a job is never offered.
bool pastes(const LoadedJob& from, const Job& to) {
  if (!check_job(to, {}).empty()) return false;
  const std::string lines = lines_to_paste(from.source, from.job, to);
  EXPECT_EQ(read(pasted(to_textproto(from.job), lines)), to) << lines;
  return true;
}

// Pastes each change alone, and on top of those of earlier families. Returns the number of changes pasted.
int expect_to_paste(const LoadedJob& job, const std::vector<Family>& families) {
  int made = 0;
  Job before = job.job;
  for (const Family& family : families) {
    Job with_family = before;
    for (const Change& change : family.changes) {
      Job alone = job.job, after = before;
      change.apply(alone), change.apply(after);
      if (pastes(job, alone)) ++made;
      if (pastes(job, after)) with_family = after;
    }
    before = with_family;
  }
  return made;
}

TEST(Paste, MakesEachChangeOfATraining) {
  for (const char* words : {"tp:2", "dp:2 tp:2", "dp:2 pp:2"}) {
    const LoadedJob job = written(small_job(words));
    EXPECT_GE(expect_to_paste(job, changes_of_training(job.job, compile(job.job).plan)), 4) << words;
  }
}

TEST(Paste, MakesEachChangeOfAGeneration) {
  Job job = small_job("dp:2 tp:2");
  job.run.generate.tokens = 4;
  job.inference.slots = 8;
  EXPECT_GE(expect_to_paste(written(job), changes_of_generation(written(job).job)), 4);
}

TEST(Paste, OffloadsAndRaisesBudgets) {
  Job job = small_job("dp:2");
  job.supernode.pool = job.supernode.flash = kGiB;
  const LoadedJob loaded = written(job);
  for (const bool generates : {false, true})
    EXPECT_GE(expect_to_paste(loaded, offloading(loaded.job, "hyperoffload", generates)), 2);
  Job more = loaded.job;
  more.supernode.hbm = Bytes(123456789), more.supernode.pool = kGiB * 3, more.supernode.flash = Bytes(5);
  EXPECT_TRUE(pastes(loaded, more));
}

// From flash to the pool, which is the default tier.
TEST(Paste, DeletesReplacedFields) {
  Job job = small_job("dp:2");
  job.supernode.pool = job.supernode.flash = kGiB;
  job.memory = {"hyperoffload", "flash", {"weights"}};
  const LoadedJob loaded = written(job);
  Job to = loaded.job;
  to.memory = {"hyperoffload", "pool", {}};
  EXPECT_TRUE(pastes(loaded, to));
}

TEST(Paste, SplitsTheBatchByRules) {
  const LoadedJob loaded = written(small_job("dp:2"));
  Job to = loaded.job;
  to.training.batch *= 2;
  to.parallel.rules = {{.tensor = "ids", .dims = {{"batch", {"dp"}}}, .origin = ""},
                       {.tensor = "targets", .dims = {{"batch", {"dp"}}}, .origin = ""}};
  EXPECT_TRUE(pastes(loaded, to));
}

TEST(Paste, NamesItsBlockAndReplacedFields) {
  const Job job = small_job("dp:2 tp:2");
  Job other = job;
  other.training.batch = 16;
  other.training.micro_batches = 4;
  other.training.recompute.push_back({"full", 0, job.model.layers - 1});
  other.parallel.presets.push_back("sp");
  const std::string presets = "presets: [\"dp\", \"tp\", \"sp\"]; ";
  const std::string training = "batch: 16 micro_batches: 4 recompute { policy: \"full\" }";
  EXPECT_EQ(lines_to_paste({}, job, other), "in parallel: " + presets + "in training: " + training);
  EXPECT_EQ(lines_to_paste(written(job).source, job, other),
            "in parallel, replacing presets: " + presets +
                "in training, replacing batch and micro_batches: " + training);
  EXPECT_EQ(lines_to_paste({}, job, job), "");
}

}  // namespace
}  // namespace hyperrun::testing

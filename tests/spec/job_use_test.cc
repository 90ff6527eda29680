// The fields that a command requires: one that starts nothing needs no data, no steps and no learning rate.
#include <gmock/gmock.h>

#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kLeast = R"(
supernode { devices: 4 hbm: "64 MiB" }
model { layers: 2 hidden: 64 heads: 4 vocab: 512 sequence: 32 }
parallel { mesh { name: "dp" size: 4 } presets: "dp" }
training { batch: 8 }
)";

Job read(std::string_view text, JobUse use) { return parse_job(text, "job.textproto", use).job; }

TEST(JobUse, WhoLooksAheadAsksForNoDataNoStepsAndNoRate) {
  for (const JobUse use : {JobUse::kToBeForeseen, JobUse::kToBePlanned}) {
    const Job job = read(kLeast, use);
    EXPECT_EQ(job.training.batch, 8);
    EXPECT_EQ(job.training.steps, 0);
    EXPECT_EQ(job.data, DataSpec{});
  }
}

TEST(JobUse, WhoRunsAsksForAllAndSaysWhat) {
  for (const JobUse use : {JobUse::kAsItIs, JobUse::kOfPrograms}) try {
      read(kLeast, use);
      ADD_FAILURE() << "accepted";
    } catch (const JobError& e) {
      for (const char* missing : {"the job has no \"data\"", "\"training\" has no \"steps\"", "no \"lr\""})
        EXPECT_THAT(e.what(), HasSubstr(missing));
      EXPECT_EQ(e.all().size(), 3u) << e.what();
    }
}

// A missing learning rate contradicts nothing: the other fields of the schedule are legal without it.
TEST(JobUse, TheRestOfTheScheduleMayBeThere) {
  std::string text(kLeast);
  text.replace(text.find("batch: 8"), 8, "batch: 8 min_lr: 1e-4 warmup_steps: 10");
  text += "run { trace_first: 3 trace_steps: 1 }";
  EXPECT_NO_THROW(read(text, JobUse::kToBeForeseen));
  EXPECT_THROW(read(text + "data {}", JobUse::kAsItIs), JobError);
}

// A learning rate that is added later gives min_lr its default, a tenth, as if it had been there before.
TEST(JobUse, TheLeastRateStaysOpenWithTheRate) {
  std::string text = to_textproto(read(kLeast, JobUse::kToBeForeseen));
  text.insert(text.find("  batch: 8"), "  lr: 1e-3 steps: 1 ");
  EXPECT_DOUBLE_EQ(read(text + "data { corpus: \"/c.txt\" }", JobUse::kAsItIs).training.min_lr, 1e-4);
}

// A value that is written is checked for every command.
TEST(JobUse, WhatIsWrittenIsChecked) {
  std::string text(kLeast);
  text.replace(text.find("batch: 8"), 8, "batch: 8 steps: 0 lr: -1");
  try {
    read(text, JobUse::kToBeForeseen);
    ADD_FAILURE() << "accepted";
  } catch (const JobError& e) {
    EXPECT_EQ(e.all().size(), 2u) << e.what();
  }
}

TEST(JobUse, WhatIsLeftOpenIsWrittenOpen) {
  const Job job = read(kLeast, JobUse::kToBeForeseen);
  const std::string text = to_textproto(job);
  for (const char* open : {"data {", "  steps:", "  lr:", "  min_lr:"})
    EXPECT_EQ(text.find(open), std::string::npos) << text;
  Job again = parse_job(text, "job.textproto", JobUse::kToBeForeseen).job;
  EXPECT_EQ(again.training, job.training);
  EXPECT_EQ(again.data, job.data);
}

}  // namespace
}  // namespace hyperrun

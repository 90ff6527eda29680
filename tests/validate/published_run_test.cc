// Reading and refusing runs in CSV.
#include "runtime/validate/published_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

const std::string kColumns =
    "set,use,devices,batch,micro_batch,hidden,heads,layers,sequence,tp,dp,pp,milliseconds\n";

TEST(PublishedRun, IsReadWithItsPlace) {
  const auto runs = read_runs(
      "# about\n" + kColumns + "\nmine,calibration,8,32,4,1024,16,24,2048,2,2,2,219.5\r\n", "a.csv");
  ASSERT_EQ(runs.size(), 1U);
  const PublishedRun& r = runs[0];
  EXPECT_EQ(r.set, "mine");
  EXPECT_TRUE(r.calibrates);
  EXPECT_EQ(r.micro_batches(), 4);
  EXPECT_EQ(r.milliseconds, 219.5);
  EXPECT_EQ(r.place, "a.csv:4");
}

TEST(PublishedRun, MayDoWithoutSetAndUse) {
  const auto runs = read_runs(
      "milliseconds,devices,batch,micro_batch,hidden,heads,layers,sequence,tp,dp,pp\n10,1,1,1,64,1,1,16,1,1,"
      "1\n",
      "");
  EXPECT_FALSE(runs[0].calibrates);
  EXPECT_EQ(runs[0].devices, 1);
}

TEST(PublishedRun, MayTellMoreOfTheModelAndTheLayout) {
  const auto runs = read_runs(
      "model,devices,batch,micro_batch,hidden,heads,kv_heads,ffn,vocab,layers,sequence,tp,cp,ep,dp,pp,sp,"
      "zero,"
      "recompute,gradients,profile,software,gib\n"
      "llama,16,8,1,64,8,2,256,1000,2,128,2,2,1,4,1,yes,1,none,float32,b200,megatron,1.5\n"
      "deepseek_v3,8,8,1,7168,128,,18432,129280,2,128,1,1,8,8,1,,1,none,float32,,,20\n",
      "a.csv");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].milliseconds, 0);
  EXPECT_EQ(runs[0].gibibytes, 1.5);
  EXPECT_EQ(runs[0].software, "megatron");
  const Job llama = job_of(runs[0], 2);
  EXPECT_EQ(llama.model.kv_heads, 2);
  EXPECT_FALSE(llama.model.tied_head);
  EXPECT_TRUE(llama.training.recompute.empty());
  EXPECT_THAT(llama.parallel.presets, ::testing::ElementsAre("dp", "tp", "cp", "sp", "zero1"));
  const Job deepseek = job_of(runs[1], 1);
  EXPECT_EQ(deepseek.model.experts.count, 256);
  EXPECT_EQ(deepseek.parallel.mesh[2].name, "ep");
  EXPECT_EQ(deepseek.parallel.mesh[1].size, 1);
}

TEST(PublishedRun, WhatIsNoneIsToldWithItsLine) {
  const auto cause = [](const std::string& csv) {
    try {
      read_runs(csv, "a.csv");
      return std::string("nothing");
    } catch (const Error& e) {
      return e.place() + " " + e.cause();
    }
  };
  EXPECT_THAT(cause(""), HasSubstr("no runs"));
  EXPECT_THAT(cause(std::string("\x7f"
                                "ELF\0\xff",
                                6)),
              HasSubstr("no text"));
  EXPECT_THAT(cause("devices,batch\n1,1\n"), HasSubstr("a.csv:1 there is no column \"micro_batch\""));
  const auto with = [&](const std::string& line) { return cause(kColumns + line + "\n"); };
  EXPECT_THAT(with("a,judged,8"), HasSubstr("a.csv:2 3 fields"));
  EXPECT_THAT(with("a,seen,8,32,4,1024,16,24,1024,2,2,2,9"), HasSubstr("use is \"seen\""));
  EXPECT_THAT(with("a,judged,8,32,4,1024,16,24,1024,2,2,1,9"), HasSubstr("tp x dp x pp is 4"));
  EXPECT_THAT(with("a,judged,8,30,4,1024,16,24,1024,2,2,2,9"), HasSubstr("batch of 30"));
  EXPECT_THAT(with("a,judged,8,32,4,1024,16,25,1024,2,2,2,9"), HasSubstr("layers"));
  EXPECT_THAT(with("a,judged,8,32,4,1024,15,24,1024,2,2,2,9"), HasSubstr("heads"));
  EXPECT_THAT(with("a,judged,8,32,4,1024,16,24,1024,2,2,2,-9"), HasSubstr("milliseconds"));
  EXPECT_THAT(with("a,judged,8,32,4,1024,16,24,1024,2,2,2,nan"), HasSubstr("milliseconds"));
  EXPECT_THAT(with("a,judged,8,32,4,1024,16,24,1024,2,2,2,1e-300"), HasSubstr("milliseconds"));
  EXPECT_THAT(with("a,judged,8,32,4,1024,16,24,1024,2,2,2,9\nb,calibration,8,32,4,1024,16,24,1024,2,2,2,8"),
              HasSubstr("a.csv:2 this run is judged, and calibrates at a.csv:3"));
  EXPECT_THAT(
      cause("devices,batch,micro_batch,hidden,heads,layers,sequence,tp,dp,pp\n1,1,1,64,1,1,16,1,1,1\n"),
      HasSubstr("a.csv:2 nothing was measured"));
  EXPECT_THAT(with("a,judged,8,32,4,1024.5,16,24,1024,2,2,2,9"), HasSubstr("hidden"));
}

TEST(PublishedRun, ThoseThatAreBuiltIn) {
  int one = 0, several = 0, calibrating_one = 0, calibrating_several = 0;
  int b200 = 0;
  for (const PublishedRun& r : shipped_runs()) {
    if (r.set == "B200") {
      ++b200;
      EXPECT_FALSE(r.calibrates) << r.place;
      EXPECT_EQ(r.profile, "b200");
      EXPECT_GT(r.gibibytes, 0);
      continue;
    }
    (r.set == "one node" ? one : several) += 1;
    if (r.calibrates) (r.set == "one node" ? calibrating_one : calibrating_several) += 1;
    EXPECT_EQ(r.set == "one node", r.devices <= 8) << r.place;
  }
  EXPECT_EQ(b200, 12);
  EXPECT_EQ(one, 480);
  EXPECT_EQ(several, 36);
  EXPECT_EQ(calibrating_one, 60);
  EXPECT_EQ(calibrating_several, 12);
}

}  // namespace
}  // namespace hyperrun

// hyperrun calibrate, as a user calls it: under its own mpirun, under a foreign one, and refused.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "runtime/spec/profile_reader.h"
#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

Command calibrate(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"calibrate", "--seconds", "1"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return hyperrun(words);
}

TEST(Calibrate, WritesAProfileThatSimulatesAJob) {
  const Workspace workspace;
  const Finished f = workspace.run(calibrate({"--devices", "2", "--out", "host.textproto"}), Seconds(60));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.err, HasSubstr("calibrating: round 1 of "));
  EXPECT_THAT(
      f.out, AllOf(HasSubstr("\nGemm trans_b=yes m=16 n=16 k=16 "), HasSubstr("\nall-reduce of 8 B among 2 "),
                   HasSubstr("mean error"), HasSubstr("matrix products"), HasSubstr("2 devices on "),
                   HasSubstr("\nprofile: host.textproto\n")));
  EXPECT_TRUE(workspace.nothing_left());

  const Machine m = load_profile(workspace / "host.textproto", "");
  EXPECT_EQ(m.name, "host");
  EXPECT_THAT(m.about, HasSubstr("the streams of a device take turns"));
  EXPECT_TRUE(m.feeder.in_order);
  ASSERT_EQ(m.levels.size(), 1u);
  EXPECT_TRUE(m.levels[0].addressable);
  for (const Figure& figure : {m.cube.f32, m.cube.bf16, m.vector, m.hbm_bandwidth, m.launch_cube,
                               m.launch_vector, m.launch_comm, m.levels[0].latency, m.levels[0].bandwidth}) {
    EXPECT_EQ(figure.evidence, Evidence::kMeasured);
    EXPECT_THAT(figure.source, AllOf(HasSubstr("medians of "), HasSubstr("; 2 devices at once on ")));
  }
  // The rate of a core is between a millionth of a TFLOP/s and a hundred of them.
  EXPECT_GT(m.cube.f32.value, 1e6);
  EXPECT_LT(m.cube.f32.value, 1e14);

  const std::string job =
      workspace.job(edited(kJob, {{"hbm: \"16 MiB\"", "hbm: \"16 MiB\" profile: \"host.textproto\""}}));
  const Finished sim = workspace.run(hyperrun({"sim", job}));
  ASSERT_THAT(sim, Succeeded()) << sim;
  EXPECT_THAT(sim.out, HasSubstr("simulated, host"));
}

TEST(Calibrate, TakesTheRanksOfAForeignMpirun) {
  const Workspace workspace;
  const Finished f =
      workspace.run(mpirun(3, {"calibrate", "--seconds", "1", "--out", "host.textproto"}), Seconds(60));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, HasSubstr("all-reduce of 8 B among 3 "));
  EXPECT_EQ(occurrences(f.out, "profile: "), 1);
  EXPECT_THAT(load_profile(workspace / "host.textproto", "").about, HasSubstr("3 devices on "));
}

TEST(Calibrate, LeavesNothingWhenItIsInterrupted) {
  const Workspace workspace;
  const auto process = workspace.start(
      hyperrun({"calibrate", "--devices", "2", "--seconds", "600", "--out", "host.textproto"}));
  ASSERT_TRUE(
      eventually([&] { return process->err().find("round 1 of") != std::string::npos; }, Seconds(30)));
  process->signal(SIGINT);
  const Finished f = process->wait(Seconds(10));
  EXPECT_NE(f.status, 0) << f;
  EXPECT_FALSE(f.timed_out);
  EXPECT_FALSE(fs::exists(workspace / "host.textproto"));
  EXPECT_TRUE(workspace.nothing_left());
}

struct Refusal {
  std::vector<std::string> arguments;
  int status;
  std::vector<std::string> said;
};

TEST(Calibrate, WhatCannotBeIsRefusedBeforeAnythingIsMeasured) {
  const Workspace workspace;
  fs::create_directory(workspace / "folder");
  for (const Refusal& bad : std::vector<Refusal>{
           {{"--devices", "2"}, 2, {"error[usage]: --out is required"}},
           {{"--out", "h"},
            2,
            {"--devices: error[usage]: ", "legal: 1 or more", "fix: hyperrun calibrate --devices "}},
           {{"--out", "h", "--devices", "0"},
            2,
            {"--devices: error[usage]: 0 is less than 1", "legal: 1 to 4096"}},
           {{"--out", "h", "--devices", "two"}, 2, {"error[usage]: \"two\" is no whole number"}},
           {{"--out", "h", "--devices", "2", "--seconds", "0"}, 2, {"error[usage]: 0 is less than 0.1"}},
           {{"--out", "none/h", "--devices", "2"},
            7,
            {"--out none/h", "error[unwritable]: ", "fix: name a file"}},
           {{"--out", "folder", "--devices", "2"}, 7, {"--out folder: error[unwritable]: is a folder"}},
           {{"--out", "corpus.txt/h", "--devices", "2"}, 7, {"error[unwritable]: "}},
       }) {
    const Finished f = workspace.run(calibrate(bad.arguments));
    EXPECT_EQ(f.status, bad.status) << f;
    EXPECT_EQ(f.out, "");
    for (const std::string& fragment : bad.said) EXPECT_THAT(f.err, HasSubstr(fragment)) << f;
    EXPECT_THAT(f.err, HasSubstr("fix: ")) << f;
  }
  EXPECT_EQ(files_below(workspace / "."), (std::vector<std::string>{"corpus.txt"}));
}

TEST(Calibrate, IsRefusedOnceUnderAForeignMpirun) {
  const Workspace workspace;
  const Finished other = workspace.run(mpirun(2, {"calibrate", "--devices", "3", "--out", "host.textproto"}));
  EXPECT_EQ(other.status, 5) << other;
  EXPECT_THAT(other.err,
              HasSubstr("--devices: error[too-few-ranks]: --devices asks for 3, mpirun started 2"));
  EXPECT_EQ(occurrences(other.err, "error["), 1) << other;
  const Finished nowhere = workspace.run(mpirun(2, {"calibrate", "--out", "none/host.textproto"}));
  EXPECT_EQ(nowhere.status, 7) << nowhere;
  EXPECT_EQ(occurrences(nowhere.err, "error["), 1) << nowhere;
  EXPECT_TRUE(workspace.nothing_left());
}

TEST(Calibrate, NeedsMpirun) {
  const Workspace workspace;
  Command command{"/usr/bin/env", "PATH=/nowhere"};
  for (const std::string& word : calibrate({"--devices", "2", "--out", "h"})) command.push_back(word);
  const Finished f = workspace.run(command);
  EXPECT_EQ(f.status, 5) << f;
  EXPECT_THAT(f.err, HasSubstr("error[mpi]: cannot run mpirun: no folder in PATH has it"));
}

}  // namespace
}  // namespace hyperrun::testing

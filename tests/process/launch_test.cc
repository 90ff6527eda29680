#include "runtime/process/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/process/host.h"
#include "runtime/process/stale_segments.h"

namespace hyperrun::process {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;

TEST(Launch, CommandLine) {
  LaunchSpec spec;
  spec.ranks = 4;
  spec.program = {"hyperrun", "device", "job.textproto"};
  spec.controller = "127.0.0.1:1";
  spec.secret = "geheim";
  spec.hostfile = "hosts";
  spec.mpirun_args = {"--mca", "btl_tcp_if_include", "eth1"};
  spec.root = true;
  const LaunchCommand c = launch_command(spec);
  EXPECT_THAT(c.argv,
              IsSupersetOf({"--oversubscribe", "--bind-to", "none", "-np", "4", "--hostfile", "hosts"}));
  const std::vector<std::string> tail(c.argv.end() - 6, c.argv.end());
  EXPECT_EQ(tail, (std::vector<std::string>{"--mca", "btl_tcp_if_include", "eth1", "hyperrun", "device",
                                            "job.textproto"}));
  EXPECT_THAT(c.argv, Each(Not(HasSubstr("geheim"))));
  EXPECT_THAT(c.environment, Contains(Pair("HYPERRUN_SECRET", "geheim")));
  EXPECT_THAT(c.environment, Contains(Pair("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")));
  EXPECT_THAT(c.environment, Contains(Pair("OMPI_MCA_osc", "^ucx")));
  EXPECT_THAT(c.environment, Contains(Pair("OMPI_MCA_mpi_yield_when_idle", "1")));
  spec.root = false;
  EXPECT_THAT(launch_command(spec).environment, Not(Contains(Pair("OMPI_ALLOW_RUN_AS_ROOT", "1"))));
}

// A rank on another host has only the environment that it is given.
TEST(Launch, WhatChoosesOpenBlasKernelsHoldsOnAllHosts) {
  LaunchSpec spec;
  spec.program = {"hyperrun"};
  const auto given = [&](const std::string& name) {
    const std::vector<std::string> argv = launch_command(spec).argv;
    const std::vector<std::string> option{"-x", name};
    return std::ranges::search(argv, option).begin() != argv.end();
  };
  const char* set = std::getenv("OPENBLAS_CORETYPE");
  const std::optional<std::string> before = set != nullptr ? std::optional<std::string>(set) : std::nullopt;
  setenv("OPENBLAS_CORETYPE", "Haswell", 1);
  EXPECT_TRUE(given("OPENBLAS_CORETYPE"));
  unsetenv("OPENBLAS_CORETYPE");
  EXPECT_FALSE(given("OPENBLAS_CORETYPE"));
  if (before) setenv("OPENBLAS_CORETYPE", before->c_str(), 1);
}

Launcher detect(const std::map<std::string, std::string>& env) {
  return detect_launcher([&](const char* name) {
    const auto i = env.find(name);
    return i == env.end() ? nullptr : i->second.c_str();
  });
}

TEST(Launch, DetectsWhoStartedUs) {
  EXPECT_EQ(detect({}), Launcher::kNone);
  EXPECT_EQ(detect({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "0"}}), Launcher::kOpenMpi);
  EXPECT_EQ(
      detect({{"PMIX_RANK", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}}),
      Launcher::kPmix);
  EXPECT_EQ(detect({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}), Launcher::kNone) << "a batch script";
}

TEST(Launch, RefusesCopiesThatCannotFindEachOther) {
  EXPECT_THROW(detect({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}), Error);
  EXPECT_THROW(detect({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}}), Error);
  EXPECT_THROW(detect({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}}), Error);
}

TEST(Leftovers, RemovesOnlyTheJobsOwn) {
  namespace fs = std::filesystem;
  const fs::path dir = fs::temp_directory_path() / ("hyperrun-leftovers-" + std::to_string(getpid()));
  const std::string base = "vader_segment." + host_name() + "." + std::to_string(geteuid()) + ".";
  const std::string session = "ompi." + host_name() + "." + std::to_string(geteuid());
  fs::create_directories(dir / session / "pid.77" / "0");
  fs::create_directories(dir / session / "pid.78");
  for (const auto* name : {"4f0c0001.0", "4f0c0001.12", "4f0c00012.0", "48f80001.0"})
    std::ofstream(dir / (base + name));
  const std::string window = "osc_sm." + host_name() + ".";
  for (const auto* name : {"4f0c0001.0.5", "4f0c00012.0.5"}) std::ofstream(dir / (window + name));
  remove_segments("1326186497", dir);  // 0x4f0c0001, as Open MPI named job 1326186497
  remove_segments("slurm.pmix.12.0", dir);
  remove_segments("", dir);
  remove_session(77, dir);
  EXPECT_FALSE(fs::exists(dir / (base + "4f0c0001.0")));
  EXPECT_FALSE(fs::exists(dir / (base + "4f0c0001.12")));
  EXPECT_TRUE(fs::exists(dir / (base + "4f0c00012.0")));
  EXPECT_TRUE(fs::exists(dir / (base + "48f80001.0")));
  EXPECT_FALSE(fs::exists(dir / (window + "4f0c0001.0.5")));
  EXPECT_TRUE(fs::exists(dir / (window + "4f0c00012.0.5")));
  EXPECT_FALSE(fs::exists(dir / session / "pid.77"));
  EXPECT_TRUE(fs::exists(dir / session / "pid.78"));
  fs::remove_all(dir);
}

}  // namespace
}  // namespace hyperrun::process

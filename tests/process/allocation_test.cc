#include "runtime/process/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/base/error.h"

namespace hyperrun::process {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

std::optional<Allocation> allocation(const Variables& variables, const std::string& host = "login") {
  return slurm_allocation(
      [&](const char* name) {
        const auto i = variables.find(name);
        return i == variables.end() ? nullptr : i->second.c_str();
      },
      host);
}

// The variables that salloc --nodes=COUNT sets.
Variables salloc(const std::string& nodes, const std::string& count, const std::string& tasks) {
  return {{"SLURM_JOB_ID", "7"},
          {"SLURM_JOB_NODELIST", nodes},
          {"SLURM_JOB_NUM_NODES", count},
          {"SLURM_TASKS_PER_NODE", tasks}};
}

TEST(Allocation, IsThereWithinAJobOfSlurmOnly) {
  EXPECT_FALSE(allocation({}));
  EXPECT_FALSE(allocation({{"SLURM_CONF", "/etc/slurm/slurm.conf"}}));
  EXPECT_TRUE(allocation(salloc("node[1-2]", "2", "2(x2)")));
}

TEST(Allocation, AddsUpTasks) {
  EXPECT_EQ(allocation(salloc("n[1-2]", "2", "2(x2)"))->tasks, 4);
  EXPECT_EQ(allocation(salloc("n[1-2]", "2", "3,1"))->tasks, 4);
  EXPECT_EQ(allocation(salloc("n[1-9]", "9", "48(x8),12"))->tasks, 396);
  EXPECT_EQ(allocation(salloc("n1", "1", ""))->tasks, 0);
}

TEST(Allocation, OfOneNodeMayBeAnotherHost) {
  EXPECT_FALSE(allocation(salloc("node1", "1", "4"))->this_host_alone) << "salloc on a login node";
  EXPECT_TRUE(allocation(salloc("node1", "1", "4"), "node1.example.org")->this_host_alone);
  Variables batch = salloc("node1", "1", "4");
  batch["SLURMD_NODENAME"] = "node1";
  EXPECT_TRUE(allocation(batch, "alias-of-node1")->this_host_alone) << "a batch script on the node";
  batch = salloc("node[1-2]", "2", "2(x2)");
  batch["SLURMD_NODENAME"] = "node1";
  EXPECT_FALSE(allocation(batch, "node1")->this_host_alone) << "the first of two nodes";
}

TEST(Allocation, NeedsATaskForEachDevice) {
  EXPECT_NO_THROW(require_tasks(*allocation(salloc("n[1-2]", "2", "2(x2)")), 4));
  EXPECT_NO_THROW(require_tasks(*allocation(salloc("n1", "1", "1")), 4)) << "one host may be oversubscribed";
  try {
    require_tasks(*allocation(salloc("n[1-2]", "2", "1(x2)")), 5);
    FAIL() << "two tasks took five devices";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kTooFewRanks);
    EXPECT_THAT(e.what(), HasSubstr("has 2 tasks (1(x2) on n[1-2]), the run has 5 ranks"));
    EXPECT_THAT(e.what(), HasSubstr("--nodes=2 --ntasks-per-node=3"));
  }
}

}  // namespace
}  // namespace hyperrun::process

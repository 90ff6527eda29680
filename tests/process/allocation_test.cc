#include "runtime/process/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/base/error.h"

namespace hyperrun::process {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
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

std::vector<std::string> lines(const std::string& nodes, const std::string& tasks) {
  std::vector<std::string> texts;
  for (const HostLine& h : hosts_of(*allocation(salloc(nodes, "2", tasks))))
    texts.push_back(h.host + " " + std::to_string(h.slots.value_or(-1)));
  return texts;
}

// Forms of names are those of `scontrol show hostnames`.
TEST(Allocation, HasANodeALine) {
  EXPECT_THAT(lines("n[1-2]", "2(x2)"), ElementsAre("n1 2", "n2 2"));
  EXPECT_THAT(lines("a,n[08-10,12]", "4,2(x3),1"), ElementsAre("a 4", "n08 2", "n09 2", "n10 2", "n12 1"));
  EXPECT_THAT(lines("r[1-2]n[1,3]-x", "1(x4)"), ElementsAre("r1n1-x 1", "r1n3-x 1", "r2n1-x 1", "r2n3-x 1"));
  EXPECT_THAT(lines("n[1-2]", "2"), IsEmpty());
  EXPECT_THAT(lines("n[1-", "2"), ElementsAre("n[1- 2"));
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

#include "runtime/process/hostfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/base/error.h"

namespace hyperrun::process {
namespace {

using testing::HasSubstr;

TEST(Hostfile, NamesAndSlots) {
  const auto hosts = parse_hosts(
      "# a cluster\n\nnode-a slots=2 max_slots=4  # fast\n  node-b   slots = 3\nnode-c\nslots.example.org "
      "max-slots=2",
      "hosts");
  ASSERT_EQ(hosts.size(), 4u);
  EXPECT_EQ(hosts[0].host, "node-a");
  EXPECT_EQ(hosts[0].line, 3);
  EXPECT_EQ(hosts[0].slots, 2);
  EXPECT_EQ(hosts[1].host, "node-b");
  EXPECT_EQ(hosts[1].slots, 3);
  EXPECT_EQ(hosts[2].slots, std::nullopt);
  EXPECT_EQ(hosts[3].line, 6);
  EXPECT_EQ(hosts[3].slots, std::nullopt);
}

TEST(Hostfile, LineEndsOfWindowsAndTheMarkAreTaken) {
  EXPECT_EQ(parse_hosts("\xEF\xBB\xBFnode-a slots=4\r\n\r\nnode-b\r\n", "hosts"),
            (std::vector<HostLine>{{1, "node-a", 4}, {3, "node-b", {}}}));
}

// As mpirun has it, a line without slots is one slot if the host has other lines.
TEST(Hostfile, AHostInSeveralLinesAddsUp) {
  EXPECT_EQ(parse_hosts("a slots=2 max_slots=8\nb\na slots=3\nc slots=1\na\nc\n", "hosts"),
            (std::vector<HostLine>{{1, "a", 6, " max_slots=8"}, {2, "b", {}}, {4, "c", 2}}));
  EXPECT_EQ(parse_hosts("a\na\na\n", "hosts"), (std::vector<HostLine>{{1, "a", 3}}));
}

TEST(Hostfile, SlotsThatAddUpBeyondAnIntegerAreRefused) {
  try {
    parse_hosts("a slots=2147483647\nb\na\n", "hosts");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kMpi);
    EXPECT_EQ(e.place(), "hosts:3");
    EXPECT_THAT(e.cause(), HasSubstr("the slots of a add up"));
  }
}

TEST(Hostfile, ALineWithoutANameIsRefused) {
  EXPECT_THROW(parse_hosts("slots=4\n", "hosts"), Error);
  EXPECT_THROW(parse_hosts("a=\na=\n", "hosts"), Error);
}

// Blanks at the equals sign are the same as those between words.
TEST(Hostfile, AnyBlankMayStandAroundTheEqualsSign) {
  EXPECT_EQ(parse_hosts("a slots\r=\v4\n", "hosts"), (std::vector<HostLine>{{1, "a", 4}}));
}

TEST(Hostfile, AnAddressOfIp6IsNoHost) {
  for (const char* address : {"[::1]", "::1", "fe80::1%eth0", "[2001:db8::7]"}) {
    try {
      parse_hosts("x slots=1\n" + std::string(address) + " slots=4", "hosts");
      ADD_FAILURE() << address;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kMpi);
      EXPECT_EQ(e.place(), "hosts:2");
      EXPECT_THAT(e.cause(), HasSubstr(std::string(address) + " is an IPv6 address"));
      EXPECT_THAT(e.remedy(), HasSubstr("/etc/hosts"));
    }
  }
}

TEST(Hostfile, SlotsMustBeANumber) {
  for (const char* bad :
       {"a slots=", "a slots=two", "a slots=0", "a slots=-1", "a slots=2x", "a slots=1e3"}) {
    try {
      parse_hosts("x slots=1\n" + std::string(bad), "hosts");
      ADD_FAILURE() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kMpi);
      EXPECT_EQ(e.place(), "hosts:2");
    }
  }
}

TEST(Hostfile, OfMpirunIsTakenWithoutAnOption) {
  const char* name = "OMPI_MCA_orte_default_hostfile";
  const char* set = std::getenv(name);
  const std::string before = set != nullptr ? set : "";
  setenv(name, "/etc/mpi/hostfile", 1);
  EXPECT_EQ(default_hostfile(), "/etc/mpi/hostfile");
  unsetenv(name);
  EXPECT_EQ(default_hostfile(), "");
  if (!before.empty()) setenv(name, before.c_str(), 1);
}

class Slots : public testing::Test {
 protected:
  ~Slots() override { std::filesystem::remove(path_); }

  std::string refusal(const std::string& content, int devices) {
    std::ofstream(path_) << content;
    try {
      require_slots(path_, devices);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kTooFewRanks);
      return std::string(e.what()).substr(path_.size());
    }
    return "";
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("hostfile-" + std::to_string(getpid()))).string();
};

TEST_F(Slots, MustBeEnoughInSum) {
  EXPECT_EQ(refusal("a slots=2\nb slots=2\n", 4), "");
  EXPECT_EQ(refusal("a slots=8\n", 4), "");
  EXPECT_EQ(refusal("a slots=2\n\nb slots=1\n# end\n", 4),
            ":3: error[too-few-ranks]: the hosts have 3 slots, the run has 4 ranks\n"
            "  legal: slots that add up to 4 or more\n"
            "  fix: raise slots (b slots=2), add hosts, or let a rank host several devices (--ranks 3)");
  EXPECT_THAT(refusal("a slots=1\n", 2), HasSubstr("the hosts have 1 slot, "));
}

TEST_F(Slots, MpirunGetsAFileInItsForm) {
  const auto form = [&](const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    const HostfileForMpirun file(path_);
    if (file.path() == path_) return std::string("as it is");
    std::ifstream read(file.path());
    return std::string(std::istreambuf_iterator<char>(read), {});
  };
  EXPECT_EQ(form("# mine\na slots = 2\nb\n"), "as it is");
  EXPECT_EQ(form("# mine\r\na slots=2\r\nb max_slots=3\r\n"), "a slots=2\nb max_slots=3\n");
  EXPECT_EQ(form("a slots=2\na slots=2\n"), "a slots=4\n");
  EXPECT_EQ(HostfileForMpirun("").path(), "");
}

// A line without slots means the number of cores, which only mpirun finds out.
TEST_F(Slots, MayBeLeftOut) { EXPECT_EQ(refusal("a\nb slots=1\n", 64), ""); }

TEST(Hostfile, AFolderIsNone) {
  try {
    require_slots("/", 1);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kMissingFile);
  }
}

TEST_F(Slots, AFileWithoutHostsHasNone) {
  EXPECT_THAT(refusal("# nothing\n", 1), HasSubstr("no line names a host"));
}

}  // namespace
}  // namespace hyperrun::process

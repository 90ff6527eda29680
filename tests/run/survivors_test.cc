// Which devices are left when hosts go and come.
#include "runtime/run/survivors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

class SurvivorsOf : public ::testing::Test {
 protected:
  // Three hosts with two slots each, "a" to "c" in the file, which call themselves "host-a" and so on.
  Survivors& make(const std::string& lines = "a slots=2\nb slots=2\nc slots=2\n") {
    std::ofstream(directory_ / "hosts") << lines;
    Hosts hosts;
    hosts.file = directory_ / "hosts";
    hosts.allocation.reset();
    return survivors_.emplace(hosts, directory_ / "left", [this](const auto& asked) {
      ++asked_;
      std::vector<process::Reached> reached;
      const std::lock_guard guard(mutex_);
      for (const process::HostLine& line : asked)
        reached.push_back({line, down_.contains(line.host) ? "" : "host-" + line.host});
      return reached;
    });
  }
  // Looks beside the run until an answer has brought devices, or the hosts are asked anew as it has not.
  std::int32_t beside() {
    const std::int32_t devices = survivors_->devices();
    for (const int before = asked_; asked_ < before + 2 && survivors_->devices() == devices;) {
      survivors_->look_beside();
      std::this_thread::yield();
    }
    return survivors_->devices();
  }
  void make_down(std::set<std::string> hosts) {
    const std::lock_guard guard(mutex_);
    down_ = std::move(hosts);
  }
  std::string left() const {
    std::string hosts;
    for (const process::HostLine& line : process::read_hosts(survivors_->hosts().file)) hosts += line.host;
    return hosts;
  }

  TemporaryDirectory directory_;
  std::mutex mutex_;
  std::set<std::string> down_;
  std::atomic<int> asked_ = 0;
  std::optional<Survivors> survivors_;
};

const std::vector<std::string> kTwoEach{"host-a", "host-a", "host-b", "host-b", "host-c", "host-c"};

TEST_F(SurvivorsOf, AnyHostMayBeTheOneThatIsGone) {
  for (const std::string gone : {"a", "b", "c"}) {
    make_down({gone});
    Survivors& survivors = make();
    survivors.look(kTwoEach);
    EXPECT_EQ(survivors.devices(), 4) << gone;
    EXPECT_EQ(left().find(gone), std::string::npos);
    EXPECT_EQ(left().size(), 2U);
  }
}

TEST_F(SurvivorsOf, AHostWithoutDevicesHasRoomForItsSlots) {
  make_down({"a"});
  Survivors& survivors = make("a slots=6\nb slots=6\nc slots=1\n");
  survivors.look(std::vector<std::string>(6, "host-a"));
  EXPECT_EQ(survivors.devices(), 7);
}

TEST_F(SurvivorsOf, HostsComeBackOneByOne) {
  make_down({"b", "c"});
  make().look(kTwoEach);
  EXPECT_EQ(survivors_->devices(), 2);
  EXPECT_EQ(beside(), 2);
  make_down({"c"});
  EXPECT_EQ(beside(), 4);
  EXPECT_EQ(left(), "ab");
  make_down({});
  EXPECT_GE(beside(), 6);
  EXPECT_EQ(left(), "abc");
}

TEST_F(SurvivorsOf, AnotherLossForgetsNoHost) {
  make_down({"c"});
  make().look(kTwoEach);
  make_down({});
  survivors_->look({"host-a", "host-a", "host-b", "host-b"});
  EXPECT_GE(survivors_->devices(), 6) << "c answers again";
  make_down({"a"});
  survivors_->look(kTwoEach);
  EXPECT_EQ(survivors_->devices(), 4);
  EXPECT_EQ(left(), "bc");
}

TEST_F(SurvivorsOf, AHostThatCannotStartIsNotTakenASecondTime) {
  make_down({"c"});
  make().look(kTwoEach);
  make_down({});
  ASSERT_GE(beside(), 6);
  survivors_->distrust_returned();
  EXPECT_EQ(survivors_->devices(), 4);
  EXPECT_EQ(left(), "ab");
  const int asked = asked_;
  survivors_->look_beside();
  EXPECT_EQ(asked_, asked) << "nobody else is missing";
  survivors_->look({"host-a", "host-a", "host-b", "host-b"});
  EXPECT_EQ(survivors_->devices(), 4);
}

}  // namespace
}  // namespace hyperrun::testing

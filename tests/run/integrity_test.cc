// Hashes of state compared, losses that diverge, and what a run starts again after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/device/device_threads.h"
#include "runtime/device/state_hashes.h"
#include "runtime/run/divergence.h"
#include "runtime/run/restarts.h"
#include "runtime/run/state_comparison.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::optional<Error> error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

// Devices whose state is all zeros, and with it equal.
class Devices {
 public:
  explicit Devices(const std::string& layout)
      : plan_(compile(small_job(layout)).plan),
        threads_(Topology::one_host(static_cast<int>(plan_.mesh.devices())), plan_.peak(), plan_.peaks()) {}

  std::string flip(int device, std::uint64_t seed) {
    return flip_bit(plan_, device, threads_.memory(device), seed);
  }

  // What a comparison after step 12 tells.
  std::optional<Error> compare() {
    std::vector<tasks::InvocationDone> results;
    for (int d = 0; d < threads_.size(); ++d) {
      results.push_back({});
      results.back().data = hashes_to_bytes(state_hashes(plan_, d, threads_.memory(d)));
    }
    const StateComparison comparison(plan_);
    const std::vector<std::string> hosts{"a", "a", "b", "b"};
    return error_of([&] { comparison.require_equal(results, 12, 8, hosts); });
  }

 private:
  Plan plan_;
  DeviceThreads threads_;
};

TEST(Comparison, NamesTheDeviceThatDiffersFromTheMajority) {
  for (const char* layout : {"dp:4", "dp:4 zero1"})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Devices devices(layout);
      ASSERT_FALSE(devices.compare().has_value());
      const int wrong = static_cast<int>(seed % 4);
      const std::string place = devices.flip(wrong, seed);
      const std::string tensor = place.substr(place.rfind(' ') + 1);
      const auto e = devices.compare();
      ASSERT_TRUE(e.has_value()) << place;
      EXPECT_EQ(e->code(), Code::kCorrupt);
      EXPECT_EQ(e->place(), "device " + std::to_string(wrong) + (wrong < 2 ? " (host a)" : " (host b)"));
      EXPECT_EQ(e->cause(), tensor +
                                " has other bits than on 3 other devices; found after step 12; after step "
                                "8 all were equal");
      devices.flip(wrong, seed);
      EXPECT_FALSE(devices.compare().has_value()) << "the bit is back";
    }
}

TEST(Comparison, NamesBothOfTwo) {
  Devices devices("dp:2 tp:2");
  std::string place;
  std::uint64_t seed = 0;
  while (place.find("ffn.down") == std::string::npos) {  // two devices hold each half of it
    if (!place.empty()) devices.flip(3, seed);
    place = devices.flip(3, ++seed);
  }
  const auto e = devices.compare();
  ASSERT_TRUE(e.has_value());
  EXPECT_EQ(e->place(), "devices 1 (host a) and 3 (host b)");
  EXPECT_THAT(e->cause(), HasSubstr("nothing tells which of them is right"));
}

TEST(Comparison, FindsNothingWhereNothingIsHeldTwice) {
  Devices devices("dp:2 zero3");
  devices.flip(1, 1);
  EXPECT_FALSE(devices.compare().has_value());
}

TEST(DivergenceTest, IsALossThatIsNotFinite) {
  Divergence divergence(0);
  divergence.require_sound(3, 1, 1);
  divergence.require_sound(1e30, 1, 2);
  for (const auto& [loss, norm] :
       {std::pair{std::nan(""), 1.0}, {std::numeric_limits<double>::infinity(), 1.0}, {3.0, std::nan("")}}) {
    const auto e = error_of([&] { divergence.require_sound(loss, norm, 3); });
    ASSERT_TRUE(e.has_value());
    EXPECT_EQ(e->code(), Code::kNotFinite);
    EXPECT_EQ(e->place(), "step 3");
  }
}

TEST(DivergenceTest, IsALossThatJumps) {
  Divergence divergence(2);
  EXPECT_FALSE(error_of([&] { divergence.require_sound(100, 1, 1); }).has_value()) << "there is no mean yet";
  for (std::int64_t step = 2; step <= 17; ++step) divergence.require_sound(4, 1, step);
  divergence.require_sound(8, 1, 18);  // exactly twice the mean of the last 16
  const auto e = error_of([&] { divergence.require_sound(8.6, 1, 19); });
  ASSERT_TRUE(e.has_value());
  EXPECT_EQ(e->code(), Code::kNotFinite);
  EXPECT_THAT(e->cause(), HasSubstr("2.024 times the mean of the last 16 (4.250000)"));
  EXPECT_THAT(e->remedy(), HasSubstr("on_divergence: \"skip\""));
  EXPECT_FALSE(error_of([&] { divergence.require_sound(8.4, 1, 19); }).has_value())
      << "a loss that has diverged is not among the last 16";
}

control::Outcome failed(Code code) {
  control::Outcome outcome;
  outcome.error = Error(code, "it failed");
  outcome.any_started = true;
  return outcome;
}

TEST(RestartsTest, FollowACorruptionAndASkippedDivergence) {
  Restarts stops(2), skips(2, true), never(0, true);
  EXPECT_TRUE(stops.again(failed(Code::kCorrupt), 0));
  EXPECT_FALSE(stops.again(failed(Code::kNotFinite), 0, true));
  EXPECT_FALSE(never.again(failed(Code::kCorrupt), 0));
  EXPECT_FALSE(never.again(failed(Code::kNotFinite), 0, true));
  EXPECT_FALSE(skips.again(failed(Code::kNotFinite), 0, false)) << "a checkpoint that is not finite";
  EXPECT_TRUE(skips.again(failed(Code::kNotFinite), 0, true));
  EXPECT_TRUE(skips.again(failed(Code::kNotFinite), 0, true));
  EXPECT_FALSE(skips.again(failed(Code::kNotFinite), 0, true)) << "again and again";
}

}  // namespace
}  // namespace hyperrun::testing

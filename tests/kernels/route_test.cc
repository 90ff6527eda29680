#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/device/kernels/experts.h"

namespace hyperrun::kernels {
namespace {

// A gate that is divided by itself is 1: rounding must leave no gradient.
TEST(RouteBackward, OfOneNormalizedChoiceIsZero) {
  for (const bool sigmoid : {false, true}) {
    const Routing how{.tokens = 1000, .experts = 4, .choices = 1, .sigmoid = sigmoid};
    std::vector<float> logits(4000), row(8), load(4), gates(1000), dgates(1000), dlogits(4000);
    std::vector<std::int32_t> ids(1000);
    for (std::size_t i = 0; i < logits.size(); ++i)
      logits[i] = 0.37F * static_cast<float>((i * 7919) % 23) - 4;
    for (std::size_t i = 0; i < dgates.size(); ++i)
      dgates[i] = 0.11F * static_cast<float>((i * 104729) % 31) - 1;
    route(how, logits.data(), nullptr, gates.data(), ids.data(), load.data(), row.data());
    route_backward(how, logits.data(), ids.data(), load.data(), dgates.data(), dlogits.data());
    EXPECT_EQ(std::ranges::count(gates, 1.0F), 1000);
    EXPECT_EQ(std::ranges::count(dlogits, 0.0F), 4000);
  }
}

// The single best score is in the last group; the best pair in the first.
TEST(Route, GroupsAreComparedByTheirTwoBest) {
  const Routing how{.tokens = 1, .experts = 6, .choices = 2, .sigmoid = true, .groups = 3};
  const std::vector<float> logits{1, 0.9F, -3, -3, 2, -4};
  std::vector<float> row(12), load(6), gates(2);
  std::vector<std::int32_t> ids(2);
  route(how, logits.data(), nullptr, gates.data(), ids.data(), load.data(), row.data());
  EXPECT_EQ(ids, (std::vector<std::int32_t>{0, 1}));
  const std::vector<float> bias{-0.5F, -0.5F, 0, 0, 0, 0};
  route(how, logits.data(), bias.data(), gates.data(), ids.data(), load.data(), row.data());
  EXPECT_EQ(ids, (std::vector<std::int32_t>{4, 5})) << "with the bias";
}

TEST(Route, BeyondTheCapacityTheLaterTokensAreDropped) {
  const Routing how{.tokens = 3, .experts = 3, .choices = 2};
  std::vector<std::int32_t> ids{2, 0, 2, 1, 2, 0}, taken(3);
  std::vector<float> gates{0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F};
  for (const std::int64_t token : {2, 0, 1}) admit(how, token, 2, taken.data(), gates.data(), ids.data());
  EXPECT_EQ(ids, (std::vector<std::int32_t>{2, 0, -3, 1, 2, 0}));
  EXPECT_EQ(gates, (std::vector<float>{0.1F, 0.2F, 0, 0.4F, 0.5F, 0.6F}));
}

}  // namespace
}  // namespace hyperrun::kernels

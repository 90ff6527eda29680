#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/device/kernels/experts.h"

namespace hyperrun::kernels {
namespace {

// A gate that is divided by itself is 1: nothing that rounding leaves is a gradient.
TEST(RouteBackward, OfOneNormalizedChoiceIsZero) {
  for (const bool sigmoid : {false, true}) {
    const Routing how{.tokens = 1000, .experts = 4, .choices = 1, .sigmoid = sigmoid};
    std::vector<float> logits(4000), row(4), load(4), gates(1000), dgates(1000), dlogits(4000);
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

}  // namespace
}  // namespace hyperrun::kernels

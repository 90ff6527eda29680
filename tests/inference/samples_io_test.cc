#include "runtime/inference/samples_io.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/inference/requests_io.h"

namespace hyperrun::testing {
namespace {

const Samples kScored{.tokens = 3, .ids = {5, 6, 7, 1, 2, 3}, .targets = {-1, 7, 8, 2, 3, -1}};

Samples trained() {
  Samples s = kScored;
  s.weight = {0, 0.5F, 0.25F, 0.125F, 0.125F, 0};
  s.advantage = {0, 1, 1, -2, -2, 0};
  s.behaviour = {0, -1.5F, -0.25F, -3, -2, 0};
  s.reference = {0, -1.25F, -0.5F, -3, -1, 0};
  return s;
}

TEST(SamplesIo, BringsBackWhatWasSent) {
  EXPECT_EQ(samples_from_bytes(to_bytes(kScored)), kScored);
  EXPECT_EQ(samples_from_bytes(to_bytes(trained())), trained());
  EXPECT_EQ(kScored.sequences(), 2);
}

TEST(SamplesIo, RefusesWhatIsTorn) {
  for (const Samples& samples : {kScored, trained()}) {
    const std::string whole = to_bytes(samples);
    for (std::size_t n = 0; n < whole.size(); ++n)
      EXPECT_THROW(samples_from_bytes(whole.substr(0, n)), Error) << n;
    EXPECT_THROW(samples_from_bytes(whole + '0'), Error);
    EXPECT_NO_THROW(samples_from_bytes(whole));
  }
}

TEST(SamplesIo, AreToldFromRequests) {
  EXPECT_TRUE(are_samples(to_bytes(kScored)));
  EXPECT_FALSE(are_samples(to_bytes(Requests{2, 4, {1, 2, 3, 4}, {0, 0, 2, 0, 1, 0, 2, 1}})));
  EXPECT_FALSE(are_samples(""));
}

}  // namespace
}  // namespace hyperrun::testing

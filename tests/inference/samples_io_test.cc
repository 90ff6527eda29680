#include "runtime/inference/samples_io.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/inference/requests_io.h"
#include "runtime/inference/vectors_io.h"

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

Samples omni(bool trains) {
  Samples s = kScored;
  s.features = {{-1, 0, 1, 2, -1, -1}, {3, -1, -1, -1, 0, 1}};
  if (trains) s.weight = trained().weight;
  return s;
}

TEST(SamplesIo, BringsBackWhatWasSent) {
  EXPECT_EQ(samples_from_bytes(to_bytes(kScored)), kScored);
  EXPECT_EQ(samples_from_bytes(to_bytes(trained())), trained());
  for (const bool trains : {false, true}) EXPECT_EQ(samples_from_bytes(to_bytes(omni(trains))), omni(trains));
  EXPECT_EQ(kScored.sequences(), 2);
}

TEST(SamplesIo, RefusesWhatIsTorn) {
  for (const Samples& samples : {kScored, trained(), omni(false), omni(true)}) {
    const std::string whole = to_bytes(samples);
    for (std::size_t n = 0; n < whole.size(); ++n)
      EXPECT_THROW(samples_from_bytes(whole.substr(0, n)), Error) << n;
    EXPECT_THROW(samples_from_bytes(whole + '0'), Error);
    EXPECT_NO_THROW(samples_from_bytes(whole));
  }
}

const InputVectors kVectors{.items = 2, .tokens = 3, .width = 1, .values = {1, 2, 3, 4, 5, -6}};

TEST(VectorsIo, BringsBackWhatWasSent) {
  EXPECT_EQ(vectors_from_bytes(to_bytes(kVectors)), kVectors);
  EXPECT_EQ(vectors_from_bytes(to_bytes(InputVectors{0, 3, 1, {}})), (InputVectors{0, 3, 1, {}}));
}

TEST(VectorsIo, RefusesWhatIsTorn) {
  const std::string whole = to_bytes(kVectors);
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_THROW(vectors_from_bytes(whole.substr(0, n)), Error) << n;
  EXPECT_THROW(vectors_from_bytes(whole + '0'), Error);
  EXPECT_THROW(vectors_from_bytes(to_bytes(kScored)), Error);
  // Without width there is no number, however many vectors; their count is not multiplied beyond an int64.
  std::string many = to_bytes(InputVectors{0, 1 << 30, 0, {}});
  many[8 + 7] = '\x40';  // the upper byte of the number of items
  EXPECT_THROW(vectors_from_bytes(many), Error);
}

TEST(VectorsIo, AreToldFromSamplesAndRequests) {
  EXPECT_TRUE(are_vectors(to_bytes(kVectors)));
  EXPECT_FALSE(are_samples(to_bytes(kVectors)));
  EXPECT_FALSE(are_vectors(to_bytes(kScored)));
  EXPECT_FALSE(are_vectors(to_bytes(Requests{2, 4, {1, 2, 3, 4}, {0, 0, 2, 0, 1, 0, 2, 1}})));
  EXPECT_FALSE(are_vectors(""));
}

TEST(SamplesIo, AreToldFromRequests) {
  EXPECT_TRUE(are_samples(to_bytes(kScored)));
  EXPECT_FALSE(are_samples(to_bytes(Requests{2, 4, {1, 2, 3, 4}, {0, 0, 2, 0, 1, 0, 2, 1}})));
  EXPECT_FALSE(are_samples(""));
}

}  // namespace
}  // namespace hyperrun::testing

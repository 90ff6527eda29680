#include "collectives/reduce.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

template <class T>
const std::byte* bytes(const std::vector<T>& v) {
  return reinterpret_cast<const std::byte*>(v.data());
}
template <class T>
std::byte* bytes(std::vector<T>& v) {
  return reinterpret_cast<std::byte*>(v.data());
}

// Every number of sources around the unrolled ones, with every tail of a vector, gives the bits of the loop
// in rank order.
TEST(Reduce, Float32IsTheLoopInOrder) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 100);
  for (const std::size_t p : {1, 2, 3, 4, 5, 8, 9, 16}) {
    for (const std::size_t n : {0, 1, 15, 16, 17, 31, 33, 64, 100, 1000}) {
      std::vector<std::vector<float>> in(p, std::vector<float>(n));
      std::vector<const std::byte*> sources;
      for (auto& v : in) {
        for (float& f : v) f = normal(rng);
        sources.push_back(bytes(v));
      }
      std::vector<float> a(n), b(n), most(n);
      const std::array<std::byte*, 2> both{bytes(a), bytes(b)};
      const std::array<std::byte*, 1> one{bytes(most)};
      reduce(DType::kF32, ReduceOp::kSum, sources, both, static_cast<std::int64_t>(n));
      reduce(DType::kF32, ReduceOp::kMax, sources, one, static_cast<std::int64_t>(n));
      for (std::size_t i = 0; i < n; ++i) {
        float sum = in[0][i], largest = in[0][i];
        for (std::size_t k = 1; k < p; ++k) sum += in[k][i], largest = std::max(largest, in[k][i]);
        ASSERT_EQ(a[i], sum);
        ASSERT_EQ(b[i], sum);
        ASSERT_EQ(most[i], largest);
      }
    }
  }
}

// bfloat16 accumulates in float32 and rounds once, to nearest even, as dtype.h does.
TEST(Reduce, BFloat16RoundsOnce) {
  std::mt19937 rng(2);
  for (const std::size_t p : {1, 2, 3, 4, 8}) {
    std::vector<std::vector<std::uint16_t>> in(p, std::vector<std::uint16_t>(1003));
    std::vector<const std::byte*> sources;
    for (auto& v : in) {
      for (auto& x : v) x = f32_to_bf16((static_cast<float>(rng() % 20001) - 10000) / 37);
      sources.push_back(bytes(v));
    }
    std::vector<std::uint16_t> out(1003);
    const std::array<std::byte*, 1> targets{bytes(out)};
    reduce(DType::kBF16, ReduceOp::kSum, sources, targets, 1003);
    for (std::size_t i = 0; i < out.size(); ++i) {
      float sum = bf16_to_f32(in[0][i]);
      for (std::size_t k = 1; k < p; ++k) sum += bf16_to_f32(in[k][i]);
      ASSERT_EQ(out[i], f32_to_bf16(sum)) << i;
    }
  }
}

TEST(Reduce, SpecialValuesSurvive) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<std::uint16_t> a(40, f32_to_bf16(NAN)), b(40, f32_to_bf16(1)), out(40);
  a[1] = a[39] = f32_to_bf16(inf);
  const std::array<const std::byte*, 2> sources{bytes(a), bytes(b)};
  const std::array<std::byte*, 1> targets{bytes(out)};
  reduce(DType::kBF16, ReduceOp::kSum, sources, targets, 40);
  EXPECT_TRUE(std::isnan(bf16_to_f32(out[0])));
  EXPECT_TRUE(std::isnan(bf16_to_f32(out[38])));
  EXPECT_EQ(bf16_to_f32(out[1]), inf);
  EXPECT_EQ(bf16_to_f32(out[39]), inf);
}

TEST(Reduce, IntegersOnlyMove) {
  std::vector<float> v(4);
  const std::array<const std::byte*, 1> sources{bytes(v)};
  const std::array<std::byte*, 1> targets{bytes(v)};
  EXPECT_THROW(reduce(DType::kI32, ReduceOp::kSum, sources, targets, 4), Error);
}

}  // namespace
}  // namespace hyperrun

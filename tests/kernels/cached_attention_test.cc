// Attention over pages beside attention over the whole text at once.
#include "runtime/device/kernels/cached_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/device/kernels/attention.h"

namespace hyperrun::kernels {
namespace {

struct Text {
  std::int64_t length, heads, kv_heads, head_dim, value_dim;
  std::vector<float> q, k, v, o;

  Text(std::int64_t n, std::int64_t h, std::int64_t kv, std::int64_t d, std::int64_t dv)
      : length(n), heads(h), kv_heads(kv), head_dim(d), value_dim(dv) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& list, std::int64_t size) {
      list.resize(static_cast<std::size_t>(size));
      std::ranges::generate(list, [&] { return normal(random); });
    };
    fill(q, n * h * d), fill(k, n * kv * d), fill(v, n * kv * dv), fill(o, n * h * dv);
    const AttentionShape whole{
        .batch = 1, .seq = n, .heads = h, .kv_heads = kv, .head_dim = d, .value_dim = dv};
    std::vector<float> lse(static_cast<std::size_t>(h * n));
    std::vector<char> scratch(static_cast<std::size_t>(attention_scratch_bytes(whole)));
    attention(whole, q.data(), k.data(), v.data(), o.data(), lse.data(), scratch.data());
  }
};

// The text in passes of so many tokens; in each the pages lie elsewhere than in the order of their numbers.
std::vector<float> grown(const Text& t, const std::vector<std::int64_t>& passes, std::int64_t page,
                         unsigned seed) {
  const std::int64_t pages = (t.length + page - 1) / page + 3;
  std::vector<std::int32_t> places(static_cast<std::size_t>(pages));
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), std::mt19937(seed));
  const float unset = 1e30F;
  std::vector<float> keys(static_cast<std::size_t>(pages * page * t.kv_heads * t.head_dim), unset),
      values(static_cast<std::size_t>(pages * page * t.kv_heads * t.value_dim), unset), o;
  std::int64_t start = 0;
  for (const std::int64_t count : passes) {
    const std::int64_t seq = count + 2;  // as a pass of more room
    const CachedShape shape{seq, t.heads, t.kv_heads, t.head_dim, t.value_dim, page, false};
    const auto rows = [&](const std::vector<float>& of, std::int64_t width) {
      std::vector<float> list(of.begin() + start * width, of.begin() + (start + count) * width);
      list.resize(static_cast<std::size_t>(seq * width), unset);
      return list;
    };
    const auto q = rows(t.q, t.heads * t.head_dim), k = rows(t.k, t.kv_heads * t.head_dim),
               v = rows(t.v, t.kv_heads * t.value_dim);
    std::vector<float> out(static_cast<std::size_t>(seq * t.heads * t.value_dim), unset);
    std::vector<char> scratch(static_cast<std::size_t>(cached_attention_scratch_bytes(shape)) + 64);
    cached_attention(shape, {start, count, places.data()}, q.data(), k.data(), v.data(), keys.data(),
                     values.data(), out.data(), scratch.data());
    const auto used = out.begin() + count * t.heads * t.value_dim;
    EXPECT_TRUE(std::all_of(used, out.end(), [](float x) { return x == 0; })) << "rows that nobody brought";
    o.insert(o.end(), out.begin(), used);
    start += count;
  }
  return o;
}

TEST(CachedAttention, OfPassesIsThatOfTheWholeText) {
  for (const std::int64_t page : {1, 16, 64}) {
    const Text t(600, 4, 2, 16, 24);
    std::vector<std::int64_t> passes{1, 63, 300};
    passes.resize(3 + 236, 1);
    const std::vector<float> o = grown(t, passes, page, 1);
    ASSERT_EQ(o.size(), t.o.size());
    for (std::size_t i = 0; i < o.size(); ++i) ASSERT_NEAR(o[i], t.o[i], 2e-6) << page << ", " << i;
  }
}

TEST(CachedAttention, DoesNotDependOnWhereThePagesLie) {
  const Text t(300, 2, 1, 8, 8);
  std::vector<std::int64_t> passes{280};
  passes.resize(21, 1);
  const std::vector<float> one = grown(t, passes, 16, 1);
  EXPECT_EQ(grown(t, passes, 16, 2), one);
  EXPECT_EQ(grown(t, passes, 5, 3), one) << "nor on their size";
}

}  // namespace
}  // namespace hyperrun::kernels

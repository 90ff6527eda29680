// Attention over pages beside attention over the whole text at once.
#include "runtime/device/kernels/cached_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/device/kernels/attention.h"
#include "runtime/device/kernels/merge_parts.h"
#include "tests/kernels/common.h"

namespace hyperrun::kernels {
namespace {

constexpr float kUnset = 1e30F;

struct Text {
  std::int64_t length, heads, kv_heads, head_dim, value_dim, window;
  std::vector<float> q, k, v, o;

  Text(std::int64_t n, std::int64_t h, std::int64_t kv, std::int64_t d, std::int64_t dv,
       std::int64_t of_window = 0)
      : length(n), heads(h), kv_heads(kv), head_dim(d), value_dim(dv), window(of_window) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& list, std::int64_t size) {
      list.resize(static_cast<std::size_t>(size));
      std::ranges::generate(list, [&] { return normal(random); });
    };
    fill(q, n * h * d), fill(k, n * kv * d), fill(v, n * kv * dv), fill(o, n * h * dv);
    const AttentionShape whole{
        .batch = 1, .seq = n, .heads = h, .kv_heads = kv, .head_dim = d, .value_dim = dv, .window = window};
    std::vector<float> lse(static_cast<std::size_t>(h * n));
    std::vector<char> scratch(static_cast<std::size_t>(attention_scratch_bytes(whole)));
    attention(whole, q.data(), k.data(), v.data(), o.data(), lse.data(), scratch.data());
  }
};

// The pages of a text, or the part of their positions that one of several devices holds.
struct Pages {
  std::vector<float> keys, values;

  Pages(const Text& t, std::int64_t positions)
      : keys(static_cast<std::size_t>(positions * t.kv_heads * t.head_dim), kUnset),
        values(static_cast<std::size_t>(positions * t.kv_heads * t.value_dim), kUnset) {}
};

// A pass by all devices that hold a part.
std::vector<float> attended(const CachedShape& shape, const CachedSequence& sequence,
                            const std::vector<float>& q, const std::vector<float>& k,
                            const std::vector<float>& v, std::vector<Pages>& held) {
  const auto parts = std::ssize(held);
  const std::int64_t size = shape.seq * shape.heads * shape.value_dim, rows = shape.seq * shape.heads;
  std::vector<float> out(static_cast<std::size_t>(size), kUnset),
      found(static_cast<std::size_t>(parts * size), kUnset),
      lse(static_cast<std::size_t>(parts * rows), kUnset);
  for (std::int64_t p = 0; p < parts; ++p) {
    CachedShape own = shape;
    own.parts = parts, own.part = p;
    Pages& pages = held[static_cast<std::size_t>(p)];
    std::vector<char> scratch(static_cast<std::size_t>(cached_attention_scratch_bytes(own)) + 64);
    if (parts == 1)
      cached_attention(own, sequence, q.data(), k.data(), v.data(), pages.keys.data(), pages.values.data(),
                       out.data(), scratch.data());
    else
      cached_attention_part(own, sequence, q.data(), k.data(), v.data(), pages.keys.data(),
                            pages.values.data(), found.data() + p * size, lse.data() + p * rows,
                            scratch.data());
  }
  if (parts > 1)
    merge_parts({parts, 1, shape.seq, shape.heads, shape.value_dim}, found.data(), lse.data(), out.data());
  return out;
}

// Runs the text in passes of these numbers of tokens; its pages lie in another order than their numbers.
std::vector<float> grown(const Text& t, const std::vector<std::int64_t>& passes, std::int64_t page,
                         unsigned seed, int parts = 1) {
  const std::int64_t pages = (t.length + page - 1) / page + 3;
  std::vector<std::int32_t> places(static_cast<std::size_t>(pages));
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), std::mt19937(seed));
  std::vector<Pages> held(static_cast<std::size_t>(parts), Pages(t, pages * page / parts));
  std::vector<float> o;
  std::int64_t start = 0;
  for (const std::int64_t count : passes) {
    const std::int64_t seq = count + 2;  // a pass with more room than tokens
    CachedShape shape{seq, t.heads, t.kv_heads, t.head_dim, t.value_dim, page / parts, false};
    shape.window = t.window;
    const auto rows = [&](const std::vector<float>& of, std::int64_t width) {
      std::vector<float> list(of.begin() + start * width, of.begin() + (start + count) * width);
      list.resize(static_cast<std::size_t>(seq * width), kUnset);
      return list;
    };
    const auto q = rows(t.q, t.heads * t.head_dim), k = rows(t.k, t.kv_heads * t.head_dim),
               v = rows(t.v, t.kv_heads * t.value_dim);
    const std::vector<float> out = attended(shape, {start, count, places.data()}, q, k, v, held);
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

// Passes are long or of single tokens; some see nothing of a part yet.
TEST(CachedAttention, OfPartsIsThatOfTheWholeText) {
  const Text t(600, 4, 2, 16, 24);
  std::vector<std::int64_t> passes{1, 63, 300};
  passes.resize(3 + 236, 1);
  for (const int parts : {2, 3, 8}) {
    const std::vector<float> o = grown(t, passes, 24, 1, parts);
    ASSERT_EQ(o.size(), t.o.size());
    for (std::size_t i = 0; i < o.size(); ++i) ASSERT_NEAR(o[i], t.o[i], 2e-6) << parts << ", " << i;
  }
}

// Windows shorter than a pass, a page and a tile, and longer.
TEST(CachedAttention, WithAWindowIsThatOfTheWholeText) {
  std::vector<std::int64_t> passes{1, 63, 300};
  passes.resize(3 + 236, 1);
  for (const std::int64_t window : {1, 2, 30, 257, 400, 700}) {
    const Text t(600, 4, 2, 16, 24, window);
    for (const int parts : {1, 2, 3}) {
      const std::vector<float> o = grown(t, passes, 24, 1, parts);
      ASSERT_EQ(o.size(), t.o.size());
      for (std::size_t i = 0; i < o.size(); ++i)
        ASSERT_NEAR(o[i], t.o[i], 2e-6) << window << ", " << parts << ", " << i;
    }
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

// One query in double precision, by the definition; `shift` moves one of its keys.
std::vector<double> by_definition(const Text& t, std::int64_t position, double shift) {
  std::vector<double> o;
  for (std::int64_t h = 0; h < t.heads; ++h) {
    const std::int64_t g = h * t.kv_heads / t.heads;
    std::vector<double> weights;
    double total = 0;
    for (std::int64_t p = 0; p <= position; ++p) {
      double score = p == 0 ? shift : 0;
      for (std::int64_t c = 0; c < t.head_dim; ++c)
        score +=
            static_cast<double>(t.q[static_cast<std::size_t>((position * t.heads + h) * t.head_dim + c)]) *
            t.k[static_cast<std::size_t>((p * t.kv_heads + g) * t.head_dim + c)];
      weights.push_back(std::exp(score / std::sqrt(static_cast<double>(t.head_dim))));
      total += weights.back();
    }
    for (std::int64_t c = 0; c < t.value_dim; ++c) {
      double sum = 0;
      for (std::int64_t p = 0; p <= position; ++p)
        sum += weights[static_cast<std::size_t>(p)] *
               t.v[static_cast<std::size_t>((p * t.kv_heads + g) * t.value_dim + c)];
      o.push_back(sum / total);
    }
  }
  return o;
}

double largest_difference(const std::vector<float>& o, const std::vector<double>& expected,
                          std::int64_t row) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    largest = std::max(
        largest,
        std::abs(static_cast<double>(o[static_cast<std::size_t>(row) * expected.size() + i]) - expected[i]));
  return largest;
}

using hyperrun::testing::available_targets;
using hyperrun::testing::OnEveryTarget;
using hyperrun::testing::target_name;

class FewQueries : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(FewQueries);

// Token by token, over tiles (256 positions), vectors and pages that begin and end anywhere.
TEST_P(FewQueries, IsAttentionByItsDefinition) {
  for (const auto& [heads, kv_heads, head_dim, value_dim, page] :
       {std::array<std::int64_t, 5>{4, 4, 32, 32, 16},
        {6, 2, 24, 16, 7},
        {3, 1, 5, 3, 64},
        {1, 1, 1, 1, 1}}) {
    const Text t(530, heads, kv_heads, head_dim, value_dim);
    const std::vector<float> o = grown(t, std::vector<std::int64_t>(530, 1), page, 5);
    for (const std::int64_t row : {0, 1, 15, 16, 17, 255, 256, 257, 511, 512, 529}) {
      EXPECT_LT(largest_difference(o, by_definition(t, row, 0), row), 5e-6) << head_dim << ", " << row;
      if (row > 0 && row < 20) {
        EXPECT_GT(largest_difference(o, by_definition(t, row, 1), row), 1e-4) << "another key";
      }
    }
  }
}

TEST_P(FewQueries, HowManyComeAtOnceChangesNoBit) {
  const Text t(290, 4, 2, 16, 24);
  std::vector<std::int64_t> pairs(145, 2);
  EXPECT_EQ(grown(t, pairs, 16, 1), grown(t, std::vector<std::int64_t>(290, 1), 5, 2));
}

}  // namespace
}  // namespace hyperrun::kernels

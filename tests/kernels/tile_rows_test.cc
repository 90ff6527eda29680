// Tiles of rows of experts, against a list of the rows with each one's source and group.
#include "runtime/device/kernels/tile_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/device/kernels/experts.h"

namespace hyperrun::kernels {
namespace {

struct Row {
  std::int64_t source, group, place;  // among all rows, before they are sorted
};

struct Case {
  std::int64_t sources, groups, tiles;
  std::vector<std::int32_t> counts;

  GroupRows rows(std::int64_t tile) const { return {counts.data(), groups, sources, {tile, tiles}}; }

  // The rows of the tile from one source, in their order of arrival.
  std::vector<Row> of_tile(std::int64_t tile) const {
    std::vector<Row> list;
    std::int64_t place = 0;
    for (std::int64_t s = 0; s < sources; ++s) {
      std::vector<Row> own;
      for (std::int64_t g = 0; g < groups; ++g)
        for (std::int32_t i = 0; i < counts[static_cast<std::size_t>(s * groups + g)]; ++i)
          own.push_back({s, g, place++});
      const auto n = static_cast<std::int64_t>(own.size());
      for (std::int64_t i = 0; i < n; ++i)
        if (n * tile / tiles <= i && i < n * (tile + 1) / tiles)
          list.push_back(own[static_cast<std::size_t>(i)]);
    }
    return list;
  }

  std::vector<Row> sorted() const {
    std::vector<Row> list;
    for (std::int64_t t = 0; t < tiles; ++t) {
      std::vector<Row> tile = of_tile(t);
      std::ranges::stable_sort(tile, {}, &Row::group);
      list.insert(list.end(), tile.begin(), tile.end());
    }
    return list;
  }
};

std::vector<Case> cases() {
  std::mt19937 random(3);
  std::vector<Case> list;
  for (int i = 0; i < 60; ++i) {
    const auto number = [&](int most) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
    };
    Case c{1 + number(5), 1 + number(6), 1 + number(5), {}};
    for (std::int64_t n = 0; n < c.sources * c.groups; ++n)
      c.counts.push_back(number(4) == 0 ? 0 : static_cast<std::int32_t>(number(9)));
    list.push_back(c);
  }
  return list;
}

TEST(TileRows, AreTheSharesOfTheSources) {
  for (const Case& c : cases())
    for (std::int64_t t = 0; t < c.tiles; ++t) {
      const std::vector<Row> expected = c.of_tile(t);
      TileRows tile(c.rows(t));
      EXPECT_EQ(range_of(c.rows(t)).first, tile.first());
      EXPECT_EQ(range_of(c.rows(t)).count, std::ssize(expected));
      for (std::int64_t g = 0; g < c.groups; ++g, tile.next()) {
        EXPECT_EQ(tile.count(), std::ranges::count(expected, g, &Row::group));
        for (std::int64_t s = 0; s < c.sources; ++s) {
          const RowRange range = tile.of_source(s);
          std::int64_t n = 0;
          for (const Row& r : expected)
            if (r.group == g && r.source == s) {
              EXPECT_EQ(r.place, range.first + n++);
            }
          EXPECT_EQ(range.count, n);
        }
      }
    }
}

// A device sends equally much to each other one in every tile, but for one row.
TEST(TileRows, MakeNoDestinationHot) {
  for (const Case& c : cases()) {
    const auto peers = static_cast<std::size_t>(c.sources);
    std::vector<std::int64_t> least(peers, 1000), most(peers), all(peers);
    for (std::int64_t t = 0; t < c.tiles; ++t) {
      std::vector<std::int64_t> elements(peers), starts(peers);
      blocks_of_tile({t, c.tiles}, c.groups, c.counts.data(), 3, elements, starts);
      for (std::size_t p = 0; p < peers; ++p) {
        EXPECT_EQ(elements[p] % 3, 0);
        least[p] = std::min(least[p], elements[p] / 3), most[p] = std::max(most[p], elements[p] / 3);
        all[p] += elements[p] / 3;
      }
      std::int64_t n = 0;
      for (const Row& r : c.of_tile(t)) {
        const auto p = static_cast<std::size_t>(r.source);
        EXPECT_TRUE(starts[p] <= 3 * r.place && 3 * r.place < starts[p] + elements[p]);
        ++n;
      }
      EXPECT_EQ(n, std::accumulate(elements.begin(), elements.end(), std::int64_t{0}) / 3);
    }
    for (std::size_t p = 0; p < peers; ++p) {
      EXPECT_LE(most[p] - least[p], 1);
      EXPECT_EQ(all[p], std::accumulate(c.counts.begin() + static_cast<std::ptrdiff_t>(p) * c.groups,
                                        c.counts.begin() + static_cast<std::ptrdiff_t>(p + 1) * c.groups, 0));
    }
  }
}

TEST(TileRows, AreSortedTileByTileAndBack) {
  for (const Case& c : cases()) {
    const std::vector<Row> expected = c.sorted();
    std::vector<float> in(expected.size()), sorted(expected.size(), -1), back(expected.size(), -1);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
    for (std::int64_t t = c.tiles; t-- > 0;) regroup(c.rows(t), 1, in.data(), sorted.data(), false);
    for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(sorted[i], static_cast<float>(expected[i].place));
    for (std::int64_t t = 0; t < c.tiles; ++t) regroup(c.rows(t), 1, sorted.data(), back.data(), true);
    EXPECT_EQ(back, in);
  }
}

// Products over all tiles are those of each row with its group's matrix.
TEST(TileRows, ProductsMeetTheirGroups) {
  constexpr std::int64_t kIn = 3, kOut = 2;
  for (const Case& c : cases()) {
    const std::vector<Row> rows = c.sorted();
    std::vector<float> x, w, y(rows.size() * kOut, -1);
    for (std::size_t i = 0; i < rows.size() * kIn; ++i) x.push_back(static_cast<float>(i % 7) - 3);
    for (std::int64_t i = 0; i < c.groups * kIn * kOut; ++i) w.push_back(static_cast<float>(i % 5) - 2);
    std::vector<float> dw(w.size(), -1);
    for (std::int64_t t = 0; t < c.tiles; ++t) {
      grouped_gemm(true, kOut, kIn, c.rows(t), x.data(), w.data(), false, y.data());
      grouped_outer(kOut, kIn, c.rows(t), y.data(), x.data(), t > 0, dw.data());
    }
    std::vector<float> expected_dw(w.size(), 0);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::int64_t o = 0; o < kOut; ++o) {
        float sum = 0;
        const auto first = static_cast<std::size_t>((rows[r].group * kOut + o) * kIn);
        for (std::size_t i = 0; i < kIn; ++i) sum += x[r * kIn + i] * w[first + i];
        EXPECT_EQ(y[r * kOut + static_cast<std::size_t>(o)], sum) << "small whole numbers";
        for (std::size_t i = 0; i < kIn; ++i) expected_dw[first + i] += sum * x[r * kIn + i];
      }
    EXPECT_EQ(dw, expected_dw);
  }
}

}  // namespace
}  // namespace hyperrun::kernels

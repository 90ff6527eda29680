// Tilings of products, compared with a count of tiles, rounds and shapes.
#include "runtime/cost/tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

namespace hyperrun::testing {
namespace {

constexpr double kRate = 1e12;

Machine machine_of(const Tiles& tiles) {
  Machine m;
  m.hbm_bandwidth = {1e11};
  m.products = {{0.9}, {64}};
  m.tiles = tiles;
  return m;
}

double seconds(const Tiling& t, const Product& p, const Machine& m) {
  return 2 * p.m * p.n * p.k / (kRate * t.share * t.depth) + t.partial_bytes / m.hbm_bandwidth.value;
}

// Seconds of a product whose tiles are dealt to the cores one by one, at the rate of their shape.
double dealt(int m, int n, int k, int rows, int columns, int parts, const Machine& machine) {
  const Tiles& t = machine.tiles;
  const double slower =
      1 + t.operands.value * (1.0 / rows + 1.0 / columns - 1 / t.rows.value - 1 / t.columns.value);
  const double core = kRate / t.cores.value * machine.products.at(static_cast<double>(k) / parts) / slower;
  int dealt = 0, rounds = 0;
  for (int i = 0; i < m; i += rows)
    for (int j = 0; j < n; j += columns)
      for (int p = 0; p < parts; ++p)
        if (dealt++ % static_cast<int>(t.cores.value) == 0) ++rounds;
  double time = rounds * (2.0 * rows * columns * k / parts) / core;
  if (parts > 1) time += 8.0 * parts * m * n / machine.hbm_bandwidth.value;
  return time;
}

double fastest(int m, int n, int k, const Machine& machine) {
  const auto halved = [](double size, double times) {
    std::set<int> sizes;
    for (int h = 0; h <= times; ++h) sizes.insert(static_cast<int>(size) >> h);
    return sizes;
  };
  const Tiles& t = machine.tiles;
  double least = 1e300;
  for (const int rows : halved(t.rows.value, t.halvings.value))
    for (const int columns : halved(t.columns.value, t.halvings.value))
      for (int parts = 1; parts <= std::min<double>(t.parts.value, k); parts *= 2) {
        least = std::min(least, dealt(m, n, k, rows, columns, parts, machine));
        if (t.halvings.value > 0) least = std::min(least, dealt(m, n, k, columns, rows, parts, machine));
      }
  return least;
}

TEST(Tiling, IsTheFastestOfAllThatAreCounted) {
  std::mt19937 random(7);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  for (const Tiles& tiles : {Tiles{{4}, {16}, {32}}, Tiles{{108}, {256}, {128}, {2}, {28}, {16}},
                             Tiles{{7}, {64}, {64}, {3}, {10}, {1}}}) {
    const Machine m = machine_of(tiles);
    for (int i = 0; i < 40; ++i) {
      const int rows = draw(1, 1500), columns = draw(1, 1500), depth = draw(1, 3000);
      const Product p{static_cast<double>(rows), static_cast<double>(columns), static_cast<double>(depth)};
      const double expected = fastest(rows, columns, depth, m);
      EXPECT_NEAR(seconds(tiling(p, m, kRate), p, m) / expected, 1, 1e-9)
          << rows << " " << columns << " " << depth;
    }
  }
}

// 108 cores: 64 tiles of 256 x 128 leave 44 cores idle. 128 tiles of 128 x 128 need two rounds. 256 tiles of
// 128 x 64 in three rounds leave 68 of 324 places empty, 512 tiles of 64 x 64 in five rounds 28 of 540.
TEST(Tiling, SmallerTilesFillTheLastRound) {
  const Product p{2048, 1024, 1e9};
  Machine m = machine_of({{108}, {256}, {128}});
  EXPECT_NEAR(tiling(p, m, kRate).share, 64.0 / 108, 1e-12) << "one shape";
  m.tiles.halvings = {2};
  EXPECT_NEAR(tiling(p, m, kRate).share, 512.0 / 540, 1e-12) << "of tiles that are equally fast";
  m.tiles.operands = {1e9};
  EXPECT_EQ(std::pair(tiling(p, m, kRate).rows, tiling(p, m, kRate).columns), std::pair(256.0, 128.0));
}

// If moving the operands takes longer than any cut computes, splitting the depth only costs.
TEST(Tiling, IsNotSplitToWaitForMemory) {
  const Machine m = machine_of({{16}, {64}, {64}, {0}, {0}, {8}});
  const Product p{128, 128, 1 << 16};
  ASSERT_GT(tiling(p, m, kRate).parts, 1);
  EXPECT_EQ(tiling(p, m, kRate, 1.0).parts, 1);
}

TEST(Tiling, FewTilesSplitTheirDepth) {
  Machine m = machine_of({{16}, {64}, {64}, {0}, {0}, {8}});
  m.products = {};
  const Tiling deep = tiling({128, 128, 1 << 20}, m, kRate);
  EXPECT_EQ(deep.parts, 4) << "four tiles on 16 cores";
  EXPECT_EQ(deep.share, 1);
  EXPECT_EQ(deep.partial_bytes, 8.0 * 4 * 128 * 128);
  EXPECT_EQ(tiling({128, 128, 16}, m, kRate).parts, 1) << "its parts would be more than its operands";
}

}  // namespace
}  // namespace hyperrun::testing

// The cost formulas against sums and closed forms that do not use them.
#include "collectives/cost.h"

#include <gtest/gtest.h>

#include <vector>

namespace hyperrun {
namespace {

std::int64_t total(const CollectiveArgs& args, Algorithm algorithm, int p) {
  std::int64_t sum = 0;
  for (int i = 0; i < p; ++i) {
    const Place place{
        .shape = {.p = p, .hosts = p, .per_host = 1}, .index = i, .local_index = 0, .host_index = i};
    sum += wire_bytes(args, algorithm, place).value;
  }
  return sum;
}

TEST(Slice, CoversEverythingOnceInLines) {
  for (const std::int64_t n : {0, 1, 15, 16, 17, 100, 1000, 12345}) {
    for (int p = 1; p <= 9; ++p) {
      std::int64_t end = 0;
      for (int i = 0; i < p; ++i) {
        const Slice s = slice(n, p, i);
        EXPECT_EQ(s.begin, end);
        EXPECT_TRUE(s.begin % 16 == 0 || s.begin == n);
        end = s.end;
      }
      EXPECT_EQ(end, n);
    }
  }
}

// Bandwidth-optimal: 2(p-1)/p n a rank on average, for any size.
TEST(WireBytes, AllReduceTotals) {
  for (int p = 2; p <= 9; ++p) {
    for (const std::int64_t n : {1, 7, 1000, 4096, 100003}) {
      const CollectiveArgs args{.kind = Collective::kAllReduce, .inner = n};
      const std::int64_t optimal = 2 * (p - 1) * n * 4;
      EXPECT_EQ(total(args, Algorithm::kDirect, p), optimal);
      EXPECT_EQ(total(args, Algorithm::kRing, p), optimal);
      EXPECT_EQ(total(args, Algorithm::kPairwise, p), optimal);
      EXPECT_EQ(total(args, Algorithm::kOneShot, p), p * (p - 1) * n * 4);
      const int q = p >= 8 ? 8 : p >= 4 ? 4 : 2;  // folding moves n there and back for each of p - q
      EXPECT_EQ(total(args, Algorithm::kHalvingDoubling, p), (2 * (q - 1) + 2 * (p - q)) * n * 4);
    }
  }
}

TEST(WireBytes, DividingSizesAreEven) {
  const CollectiveArgs args{.kind = Collective::kAllReduce, .dtype = DType::kBF16, .inner = 8 * 16 * 3};
  for (const Algorithm a :
       {Algorithm::kDirect, Algorithm::kRing, Algorithm::kPairwise, Algorithm::kHalvingDoubling}) {
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(wire_bytes(args, a, {.shape = {.p = 8, .hosts = 8, .per_host = 1}, .index = i}).value,
                2 * 7 * 16 * 3 * 2);
    }
  }
}

TEST(WireBytes, HierarchyTotals) {
  const CollectiveArgs args{.kind = Collective::kAllReduce, .inner = 10007};
  const int hosts = 3, per_host = 4;
  std::int64_t sum = 0;
  for (int h = 0; h < hosts; ++h) {
    for (int l = 0; l < per_host; ++l) {
      sum += wire_bytes(args, Algorithm::kHierarchical,
                        {.shape = {.p = 12, .hosts = hosts, .per_host = per_host},
                         .index = h * per_host + l,
                         .local_index = l,
                         .host_index = h})
                 .value;
    }
  }
  // Inside each host 2(l-1)n, between them an all-reduce of n over 3 members by halving-doubling: 4n.
  EXPECT_EQ(sum, (hosts * 2 * (per_host - 1) + 4) * 10007 * 4);
}

TEST(WireBytes, MovesTotals) {
  for (int p = 2; p <= 7; ++p) {
    const std::int64_t m = 105;
    const std::int64_t moved = (p - 1) * p * m * 4;
    EXPECT_EQ(total({.kind = Collective::kReduceScatter, .outer = 5, .inner = 21}, Algorithm::kRing, p),
              moved);
    EXPECT_EQ(total({.kind = Collective::kAllGather, .outer = 5, .inner = 21}, Algorithm::kDirect, p), moved);
    const AllToAllShape shape{.a = 1, .x = p, .b = 5, .y = p, .c = 21};
    EXPECT_EQ(total({.kind = Collective::kAllToAll, .all_to_all = shape}, Algorithm::kPairwise, p), moved);
    for (int root = 0; root < p; ++root) {
      const CollectiveArgs args{.kind = Collective::kBroadcast, .inner = m, .peer = root};
      EXPECT_EQ(total(args, Algorithm::kBinomial, p), (p - 1) * m * 4);
      EXPECT_EQ(total(args, Algorithm::kDirect, p), (p - 1) * m * 4);
    }
    EXPECT_EQ(total({.kind = Collective::kShift, .inner = m}, Algorithm::kPairwise, p), p * m * 4);
    EXPECT_EQ(total({.kind = Collective::kShift, .inner = m}, Algorithm::kDirect, p), p * m * 4);
    EXPECT_EQ(total({.kind = Collective::kBarrier}, Algorithm::kDissemination, p), 0);
  }
}

// The rows of HCCL's table, in round numbers: alpha 1000, beta 2, gamma 1.
TEST(Time, FollowsTheTable) {
  const LinkCost link{.alpha = 1000, .beta = 2, .gamma = 1};
  const std::int64_t n = 1 << 20;
  const CollectiveArgs all_reduce{.kind = Collective::kAllReduce, .inner = n / 4};
  auto t = [&](const CollectiveArgs& args, Algorithm a, int p) {
    return time(args, a, {.p = p, .hosts = p, .per_host = 1}, link, link).value;
  };
  EXPECT_EQ(t(all_reduce, Algorithm::kRing, 4), 6 * 1000 + 3 * n + n * 3 / 4);
  EXPECT_EQ(t(all_reduce, Algorithm::kHalvingDoubling, 4), 4 * 1000 + 3 * n + n * 3 / 4);
  EXPECT_EQ(t(all_reduce, Algorithm::kHalvingDoubling, 6), 6 * 1000 + 7 * n + n * 7 / 4);
  EXPECT_EQ(t({.kind = Collective::kAllGather, .inner = n / 16}, Algorithm::kRing, 4), 3 * 1000 + n * 3 / 2);
  EXPECT_EQ(t({.kind = Collective::kReduceScatter, .inner = n / 16}, Algorithm::kRing, 4),
            3 * 1000 + n * 3 / 2 + n * 3 / 4);
  EXPECT_EQ(t({.kind = Collective::kBarrier}, Algorithm::kDissemination, 5), 3 * 1000);
  EXPECT_EQ(t({.kind = Collective::kShift, .inner = n / 4}, Algorithm::kPairwise, 8), 1000 + 2 * n);
}

TEST(Selection, KnowsHowAGroupLies) {
  const Topology t = Topology::uniform(2, 2);
  EXPECT_EQ(shape_of({0, 1}, t), (GroupShape{2, 1, 2}));
  EXPECT_EQ(shape_of({0, 2}, t), (GroupShape{2, 2, 1}));
  EXPECT_EQ(shape_of({3, 1, 0}, t), (GroupShape{3, 2, 0}));
  const CollectiveArgs small{.kind = Collective::kAllReduce, .inner = 2};
  const CollectiveArgs large{.kind = Collective::kAllReduce, .inner = 1 << 20};
  EXPECT_EQ(select(small, {4, 1, 4}), Algorithm::kOneShot);
  EXPECT_EQ(select(large, {4, 1, 4}), Algorithm::kDirect);
  EXPECT_EQ(select(large, {4, 2, 2}), Algorithm::kHierarchical);
  EXPECT_EQ(select(large, {4, 4, 1}), Algorithm::kHalvingDoubling);
  EXPECT_EQ(select(large, {6, 6, 1}), Algorithm::kRing);
  EXPECT_EQ(select(large, {3, 2, 0}), Algorithm::kRing);
}

}  // namespace
}  // namespace hyperrun

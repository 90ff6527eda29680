// Placement of the pool's parts: every byte once, within each host's share, on its device's host first.
#include "memory/pool_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace hyperrun {
namespace {

using ::testing::ElementsAre;

std::vector<Bytes> bytes(std::initializer_list<std::int64_t> list) {
  std::vector<Bytes> result;
  for (const std::int64_t b : list) result.emplace_back(b);
  return result;
}

Topology hosts(std::vector<int> host_of) { return {std::move(host_of)}; }

Bytes sum(const std::vector<Bytes>& list) {
  Bytes total{};
  for (const Bytes b : list) total += b;
  return total;
}

TEST(PoolPlacement, PartsWithRoomOnTheirOwnHostLieThere) {
  const PoolPlacement p = place_pool(hosts({0, 0, 1}), Bytes(300), bytes({120, 80, 100}));
  EXPECT_FALSE(p.spills());
  EXPECT_THAT(p.parts[0], ElementsAre(PoolExtent{0, Bytes(0), Bytes(120)}));
  EXPECT_THAT(p.parts[2], ElementsAre(PoolExtent{2, Bytes(0), Bytes(100)}));
  EXPECT_EQ(p.segments, bytes({120, 80, 100}));
}

// Host 0 has 200 of 300 bytes and needs 260. Each of its two devices gives up the last 30 bytes of its part.
TEST(PoolPlacement, OtherPartsSpillEvenlyToHostsWithRoom) {
  const PoolPlacement p = place_pool(hosts({0, 0, 1}), Bytes(300), bytes({180, 80, 40}));
  EXPECT_THAT(p.parts[0],
              ElementsAre(PoolExtent{0, Bytes(0), Bytes(150)}, PoolExtent{2, Bytes(40), Bytes(30)}));
  EXPECT_THAT(p.parts[1],
              ElementsAre(PoolExtent{1, Bytes(0), Bytes(50)}, PoolExtent{2, Bytes(70), Bytes(30)}));
  EXPECT_EQ(p.segments, bytes({150, 50, 100}));
  EXPECT_EQ(p.elsewhere(0), Bytes(30));
  EXPECT_EQ(p.elsewhere(2), Bytes(0));
}

// A device with fewer bytes than the equal amount gives up all of them, and its neighbour the rest.
TEST(PoolPlacement, ASmallPartGivesUpNoMoreThanItHas) {
  const PoolPlacement p = place_pool(hosts({0, 0, 1, 1}), Bytes(400), bytes({300, 10, 20, 0}));
  EXPECT_EQ(p.elsewhere(1), Bytes(10));
  EXPECT_EQ(p.elsewhere(0), Bytes(100));
  EXPECT_EQ(p.parts[0][1].rank, 2) << "holds nothing for others yet";
  EXPECT_EQ(p.parts[1][0].rank, 3) << "holds least for others";
}

TEST(PoolPlacement, TheSmallestPoolWithoutSpill) {
  const Topology topology = hosts({0, 0, 1});
  const auto parts = bytes({180, 80, 40});
  const Bytes enough = pool_without_spill(topology, parts);
  EXPECT_FALSE(place_pool(topology, enough, parts).spills());
  EXPECT_TRUE(place_pool(topology, enough - Bytes(4), parts).spills());
}

TEST(PoolPlacement, SharesAreInProportionAndExact) {
  EXPECT_EQ(pool_shares(hosts({0, 1, 0}), Bytes(300)), bytes({200, 100}));
  const Bytes large(std::int64_t{1} << 60);
  EXPECT_EQ(sum(pool_shares(Topology::uniform(5, 7), large + Bytes(3))), large + Bytes(3));
}

class RandomPools : public ::testing::TestWithParam<unsigned> {};

Topology random_hosts(std::mt19937& random, int ranks) {
  Topology t;
  const int most = std::uniform_int_distribution(1, ranks)(random);
  std::map<int, int> number;  // by host, in order of appearance
  for (int r = 0; r < ranks; ++r) {
    const int host = std::uniform_int_distribution(0, most - 1)(random);
    t.host_of.push_back(number.try_emplace(host, static_cast<int>(number.size())).first->second);
  }
  return t;
}

std::vector<Bytes> random_parts(std::mt19937& random, int ranks) {
  std::vector<Bytes> parts;
  for (int r = 0; r < ranks; ++r)
    parts.emplace_back(random() % 4 == 0 ? 0 : std::uniform_int_distribution<std::int64_t>(1, 5000)(random));
  return parts;
}

// Checks that the extents cover every byte of each part exactly once and fill the segments without overlap.
void expect_exact_cover(const PoolPlacement& p, const std::vector<Bytes>& parts) {
  std::vector<std::vector<std::pair<Bytes, Bytes>>> taken(parts.size());
  for (std::size_t d = 0; d < parts.size(); ++d) {
    Bytes total{};
    for (const PoolExtent& e : p.parts[d]) {
      EXPECT_GT(e.bytes.value, 0);
      total += e.bytes;
      taken[static_cast<std::size_t>(e.rank)].emplace_back(e.offset, e.offset + e.bytes);
    }
    EXPECT_EQ(total, parts[d]);
  }
  for (std::size_t r = 0; r < taken.size(); ++r) {
    std::ranges::sort(taken[r]);
    Bytes end{};
    for (const auto& [from, to] : taken[r]) {
      EXPECT_EQ(from, end);
      end = to;
    }
    EXPECT_EQ(end, p.segments[r]);
  }
}

TEST_P(RandomPools, AreCoveredWithinSharesAndLocalFirst) {
  std::mt19937 random(GetParam());
  const int ranks = std::uniform_int_distribution(1, 12)(random);
  const Topology topology = random_hosts(random, ranks);
  const std::vector<Bytes> parts = random_parts(random, ranks);
  const Bytes budget = sum(parts) + Bytes(std::uniform_int_distribution<std::int64_t>(0, 300)(random));
  const PoolPlacement p = place_pool(topology, budget, parts);
  expect_exact_cover(p, parts);
  const std::vector<Bytes> shares = pool_shares(topology, budget);
  EXPECT_EQ(sum(shares), budget);
  for (int h = 0; h < topology.hosts(); ++h) {
    Bytes lent{}, own{}, need{}, most{};
    bool gives_all = true;
    for (int r = 0; r < ranks; ++r) {
      if (topology.host_of[static_cast<std::size_t>(r)] != h) continue;
      const Bytes part = parts[static_cast<std::size_t>(r)];
      lent += p.segments[static_cast<std::size_t>(r)];
      need += part;
      own += part - p.elsewhere(r);
      most = std::max(most, p.elsewhere(r));
    }
    for (int r = 0; r < ranks; ++r)
      if (topology.host_of[static_cast<std::size_t>(r)] == h) {
        const Bytes part = parts[static_cast<std::size_t>(r)];
        gives_all = gives_all && p.elsewhere(r) + Bytes(1) >= std::min(part, most);
      }
    const Bytes share = shares[static_cast<std::size_t>(h)];
    EXPECT_LE(lent, share);
    EXPECT_EQ(own, std::min(need, share)) << "as far as the share lasts";
    EXPECT_TRUE(gives_all) << "as much as its neighbours";
  }
  EXPECT_FALSE(place_pool(topology, pool_without_spill(topology, parts), parts).spills());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPools, ::testing::Range(0U, 200U));

}  // namespace
}  // namespace hyperrun

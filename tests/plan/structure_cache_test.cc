// The cache of structures between the first and second round of a search.
#include "runtime/plan/structure_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/bounding.h"
#include "runtime/plan/forecaster.h"
#include "runtime/plan/layer_profile_cache.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

std::shared_ptr<LayerProfileCache::Structures> some_structures(const Job& job) {
  LayerProfileCache cache(job);
  EXPECT_NE(cache.bound_profile(Strategy{}), nullptr);
  return cache.swap_structures();
}

std::vector<Bounded> bounded(const Job& job, StructureCache& structures) {
  const Space& space = spaces().front();
  return bound_all(
             job, space, shapes_of(job, space), [](std::int64_t) {}, &structures)
      .lowest();
}

// The third entry would fit beside the first, but the second one precedes it.
TEST(StructureCache, KeepsTheLeastBoundsInAnyOrder) {
  const auto large = some_structures(planned_mixture(8, 4, 8)),
             small = some_structures(planned_llama(8, 4, 8));
  const std::size_t most = LayerProfileCache::instr_count(*large) + LayerProfileCache::instr_count(*small);
  ASSERT_GT(LayerProfileCache::instr_count(*large), LayerProfileCache::instr_count(*small));
  std::array groups{0, 1, 2, 3};  // sorted by bound
  do {
    StructureCache structures(most);
    for (const int g : groups) structures.keep(std::to_string(g), g, g < 2 ? large : small);
    EXPECT_NE(structures.take("0"), nullptr);
    for (const int g : {0, 1, 2, 3, 4})
      EXPECT_EQ(structures.take(std::to_string(g)), nullptr) << "taken before, left or none: " << g;
  } while (std::ranges::next_permutation(groups).found);
}

TEST(StructureCache, HasNoGroupWithoutABoundOrBeyondTheLast) {
  StructureCache structures;
  const auto any = some_structures(planned_llama(8, 4, 8));
  structures.keep("none", std::numeric_limits<double>::infinity(), any);
  structures.keep("some", 2, any), structures.keep("less", 1, any);
  structures.drop_beyond(1);
  EXPECT_EQ(structures.take("none"), nullptr);
  EXPECT_EQ(structures.take("some"), nullptr);
  EXPECT_NE(structures.take("less"), nullptr);
}

// The cache is filled in the order of the least bound of each group.
TEST(StructureCache, FillsUpInTheOrderOfBounds) {
  const Job job = planned_mixture(16, 4, 16);
  const LayerProfileCache cache(job);
  StructureCache all;
  std::map<std::string, double> least;
  for (const Bounded& b : bounded(job, all)) {
    const auto [it, is_new] = least.try_emplace(cache.key_of_group(b.strategy), b.bound);
    it->second = std::min(it->second, b.bound);
  }
  std::vector<std::pair<double, std::string>> groups;
  for (const auto& [group, bound] : least) groups.emplace_back(bound, group);
  std::ranges::sort(groups);
  ASSERT_GT(groups.size(), 8U);
  std::size_t room = 0;
  std::set<std::string> expected, kept;
  for (std::size_t g = 0; g < groups.size() / 2; ++g) {
    const auto structures = all.take(groups[g].second);
    ASSERT_NE(structures, nullptr);
    room += LayerProfileCache::instr_count(*structures), expected.insert(groups[g].second);
  }
  StructureCache few(room);
  bounded(job, few);
  for (const auto& [bound, group] : groups)
    if (few.take(group) != nullptr) kept.insert(group);
  EXPECT_EQ(kept, expected);
}

// Nothing that the second round needs is computed again.
TEST(StructureCache, HasAllThatTheSecondRoundNeeds) {
  const Job job = planned_mixture(8, 4, 16);
  StructureCache structures;
  const std::vector<Bounded> list = bounded(job, structures);
  LayerProfileCache cache(job);
  const std::string group = cache.key_of_group(list.front().strategy);
  cache.swap_structures(structures.take(group));
  std::size_t asked = 0;
  auto known = cache.swap_structures();
  const std::size_t before = LayerProfileCache::instr_count(*known);
  cache.swap_structures(std::move(known));
  for (const Bounded& b : list)
    if (cache.key_of_group(b.strategy) == group) asked += cache.bound_profile(b.strategy) != nullptr ? 1 : 0;
  EXPECT_GT(asked, 10U);
  EXPECT_EQ(LayerProfileCache::instr_count(*cache.swap_structures()), before);
}

std::vector<Forecasts> forecasts(const Job& job, const std::vector<Bounded>& list,
                                 StructureCache* structures) {
  std::vector<Forecasts> found(list.size());
  const auto all = [](const Strategy&) { return std::numeric_limits<double>::infinity(); };
  Forecaster(job, spaces().front(), structures).each(list, all, [&](std::size_t i, Forecasts&& f) {
    found[i] = std::move(f);
  });
  return found;
}

// The second round has the same result without the cache.
TEST(StructureCache, ChangesNoForecast) {
  for (const Job& job : {planned_llama(8, 4, 16), planned_mixture(8, 4, 16)}) {
    StructureCache structures;
    std::vector<Bounded> list = bounded(job, structures);
    list.resize(std::min<std::size_t>(list.size(), 200));
    const std::vector<Forecasts> after = forecasts(job, list, &structures),
                                 alone = forecasts(job, list, nullptr);
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(after[i].bound_in_own_order, alone[i].bound_in_own_order) << describe(list[i].strategy);
      EXPECT_EQ(after[i].bound_with_extra, alone[i].bound_with_extra) << describe(list[i].strategy);
      ASSERT_EQ(after[i].plain.has_value(), alone[i].plain.has_value()) << describe(list[i].strategy);
      if (!after[i].plain) continue;
      EXPECT_EQ(after[i].plain->forecast.time, alone[i].plain->forecast.time);
      EXPECT_EQ(after[i].plain->forecast.memory, alone[i].plain->forecast.memory);
    }
  }
}

// The second round uses the cache: structures of another model under the same groups give other bounds.
TEST(StructureCache, IsUsedByTheSecondRound) {
  const Job job = planned_llama(8, 4, 16);
  Job wider = job;
  wider.model.ffn *= 2;
  StructureCache structures, of_another;
  std::vector<Bounded> list = bounded(job, structures);
  bounded(wider, of_another);
  list.resize(std::min<std::size_t>(list.size(), 20));
  const std::vector<Forecasts> found = forecasts(job, list, &of_another),
                               alone = forecasts(job, list, nullptr);
  for (std::size_t i = 0; i < list.size(); ++i)
    EXPECT_GT(found[i].bound_in_own_order, alone[i].bound_in_own_order) << describe(list[i].strategy);
}

}  // namespace
}  // namespace hyperrun::testing

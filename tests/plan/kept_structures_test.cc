// What the first round of a search leaves to the second.
#include "runtime/plan/kept_structures.h"

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
#include "runtime/plan/forecasting.h"
#include "runtime/plan/piece_table.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

std::shared_ptr<PieceTable::Structures> some_structures(const Job& job) {
  PieceTable table(job);
  EXPECT_NE(table.find_least(Strategy{}), nullptr);
  return table.exchange();
}

std::vector<Bounded> bounded(const Job& job, KeptStructures& structures) {
  const Space& space = spaces().front();
  return bound_all(
             job, space, shapes_of(job, space), [](std::int64_t) {}, &structures)
      .lowest();
}

// The third would fit beside the first but for the second, which comes before it.
TEST(KeptStructures, AreThoseOfTheLeastBoundsInWhicheverOrderTheyCome) {
  const auto large = some_structures(planned_mixture(8, 4, 8)),
             small = some_structures(planned_llama(8, 4, 8));
  const std::size_t most = PieceTable::instrs_of(*large) + PieceTable::instrs_of(*small);
  ASSERT_GT(PieceTable::instrs_of(*large), PieceTable::instrs_of(*small));
  std::array groups{0, 1, 2, 3};  // by their bounds
  do {
    KeptStructures structures(most);
    for (const int g : groups) structures.keep(std::to_string(g), g, g < 2 ? large : small);
    EXPECT_NE(structures.take("0"), nullptr);
    for (const int g : {0, 1, 2, 3, 4})
      EXPECT_EQ(structures.take(std::to_string(g)), nullptr) << "taken before, left or none: " << g;
  } while (std::ranges::next_permutation(groups).found);
}

TEST(KeptStructures, HaveNoGroupWithoutABoundNorBeyondOne) {
  KeptStructures structures;
  const auto any = some_structures(planned_llama(8, 4, 8));
  structures.keep("none", std::numeric_limits<double>::infinity(), any);
  structures.keep("some", 2, any), structures.keep("less", 1, any);
  structures.drop_beyond(1);
  EXPECT_EQ(structures.take("none"), nullptr);
  EXPECT_EQ(structures.take("some"), nullptr);
  EXPECT_NE(structures.take("less"), nullptr);
}

// So many as go in, in the order of the least bound of any of their strategies.
TEST(KeptStructures, AreOfTheGroupsOfTheLeastBounds) {
  const Job job = planned_mixture(16, 4, 16);
  const PieceTable table(job);
  KeptStructures all;
  std::map<std::string, double> least;
  for (const Bounded& b : bounded(job, all)) {
    const auto [it, is_new] = least.try_emplace(table.key_of_group(b.strategy), b.bound);
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
    room += PieceTable::instrs_of(*structures), expected.insert(groups[g].second);
  }
  KeptStructures few(room);
  bounded(job, few);
  for (const auto& [bound, group] : groups)
    if (few.take(group) != nullptr) kept.insert(group);
  EXPECT_EQ(kept, expected);
}

// Nothing is made again of what the second round asks for of the same.
TEST(KeptStructures, HaveAllThatBoundsAskFor) {
  const Job job = planned_mixture(8, 4, 16);
  KeptStructures structures;
  const std::vector<Bounded> list = bounded(job, structures);
  PieceTable table(job);
  const std::string group = table.key_of_group(list.front().strategy);
  table.exchange(structures.take(group));
  std::size_t asked = 0;
  auto known = table.exchange();
  const std::size_t before = PieceTable::instrs_of(*known);
  table.exchange(std::move(known));
  for (const Bounded& b : list)
    if (table.key_of_group(b.strategy) == group) asked += table.find_least(b.strategy) != nullptr ? 1 : 0;
  EXPECT_GT(asked, 10U);
  EXPECT_EQ(PieceTable::instrs_of(*table.exchange()), before);
}

std::vector<Forecasts> forecasts(const Job& job, const std::vector<Bounded>& list,
                                 KeptStructures* structures) {
  std::vector<Forecasts> found(list.size());
  const auto all = [](const Strategy&) { return std::numeric_limits<double>::infinity(); };
  Forecasting(job, spaces().front(), structures).each(list, all, [&](std::size_t i, Forecasts&& f) {
    found[i] = std::move(f);
  });
  return found;
}

// The second round says what it says without them.
TEST(KeptStructures, AreGoneOnFrom) {
  for (const Job& job : {planned_llama(8, 4, 16), planned_mixture(8, 4, 16)}) {
    KeptStructures structures;
    std::vector<Bounded> list = bounded(job, structures);
    list.resize(std::min<std::size_t>(list.size(), 200));
    const std::vector<Forecasts> after = forecasts(job, list, &structures),
                                 alone = forecasts(job, list, nullptr);
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(after[i].bound_as_it_is, alone[i].bound_as_it_is) << words(list[i].strategy);
      EXPECT_EQ(after[i].bound_of_more, alone[i].bound_of_more) << words(list[i].strategy);
      ASSERT_EQ(after[i].as_it_is.has_value(), alone[i].as_it_is.has_value()) << words(list[i].strategy);
      if (!after[i].as_it_is) continue;
      EXPECT_EQ(after[i].as_it_is->forecast.time, alone[i].as_it_is->forecast.time);
      EXPECT_EQ(after[i].as_it_is->forecast.memory, alone[i].as_it_is->forecast.memory);
    }
  }
}

// And it looks at them: those of another model, under the same groups, give other bounds.
TEST(KeptStructures, AreWhatTheSecondRoundLooksAt) {
  const Job job = planned_llama(8, 4, 16);
  Job wider = job;
  wider.model.ffn *= 2;
  KeptStructures structures, of_another;
  std::vector<Bounded> list = bounded(job, structures);
  bounded(wider, of_another);
  list.resize(std::min<std::size_t>(list.size(), 20));
  const std::vector<Forecasts> found = forecasts(job, list, &of_another),
                               alone = forecasts(job, list, nullptr);
  for (std::size_t i = 0; i < list.size(); ++i)
    EXPECT_GT(found[i].bound_as_it_is, alone[i].bound_as_it_is) << words(list[i].strategy);
}

}  // namespace
}  // namespace hyperrun::testing

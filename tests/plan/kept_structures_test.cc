// What the first round of a search leaves to the second.
#include "runtime/plan/kept_structures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
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

TEST(KeptStructures, AreThoseOfTheLeastBoundsInWhicheverOrderTheyCome) {
  const Job job = planned_llama(8, 4, 8);
  const auto structures_of_any = some_structures(job);
  const std::size_t each = PieceTable::instrs_of(*structures_of_any);
  ASSERT_GT(each, 0U);
  std::array groups{0, 1, 2, 3, 4};  // by their bounds
  do {
    KeptStructures structures(2 * each + each / 2);
    for (const int g : groups) structures.keep(std::to_string(g), g, structures_of_any);
    for (const int g : {0, 1}) EXPECT_NE(structures.take(std::to_string(g)), nullptr) << g;
    for (const int g : {0, 2, 3, 4, 5})
      EXPECT_EQ(structures.take(std::to_string(g)), nullptr) << "taken before, left or none: " << g;
  } while (std::ranges::next_permutation(groups).found);
}

TEST(KeptStructures, HaveNoGroupWithoutABound) {
  KeptStructures structures;
  structures.keep("none", std::numeric_limits<double>::infinity(), some_structures(planned_llama(8, 4, 8)));
  EXPECT_EQ(structures.take("none"), nullptr);
}

// With them a table makes nothing again, and says what one says that has made all by itself.
TEST(KeptStructures, AreGoneOnFrom) {
  for (const Job& job : {planned_llama(8, 4, 16), planned_mixture(8, 4, 16)}) {
    const Space& space = spaces().front();
    const auto bounded = [&](KeptStructures* kept) {
      return bound_all(
                 job, space, shapes_of(job, space), [](std::int64_t) {}, kept)
          .lowest();
    };
    KeptStructures kept;
    std::vector<Bounded> list = bounded(&kept);
    list.resize(std::min<std::size_t>(list.size(), 200));
    const auto all = [](const Strategy&) { return std::numeric_limits<double>::infinity(); };
    const auto forecasts = [&](KeptStructures* structures) {
      std::vector<Forecasts> found(list.size());
      Forecasting(job, space, structures).each(list, all, [&](std::size_t i, Forecasts&& f) {
        found[i] = std::move(f);
      });
      return found;
    };
    const std::vector<Forecasts> after = forecasts(&kept), alone = forecasts(nullptr);
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(after[i].bound_as_it_is, alone[i].bound_as_it_is) << words(list[i].strategy);
      EXPECT_EQ(after[i].bound_of_more, alone[i].bound_of_more) << words(list[i].strategy);
      ASSERT_EQ(after[i].as_it_is.has_value(), alone[i].as_it_is.has_value()) << words(list[i].strategy);
      if (!after[i].as_it_is) continue;
      EXPECT_EQ(after[i].as_it_is->forecast.time, alone[i].as_it_is->forecast.time);
      EXPECT_EQ(after[i].as_it_is->forecast.memory, alone[i].as_it_is->forecast.memory);
    }
    PieceTable table(job);
    EXPECT_EQ(kept.take(table.key_of_group(list.front().strategy)), nullptr) << "it was taken";
  }
}

}  // namespace
}  // namespace hyperrun::testing

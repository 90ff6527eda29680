// Dependencies between accesses to tiles: dropping old records changes no dependency, and the number of
// records does not grow without bound.
#include "runtime/ir/tile_dependencies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace hyperrun::testing {
namespace {

using Users = std::set<int>;

// Accesses to one place in memory, recorded like in the compiler's events and the verifier. Each access knows
// all earlier ones that it comes after.
class Place {
 public:
  explicit Place(bool forgets) : forgets_(forgets) {}

  // Adds an access, and returns all earlier ones that it comes after.
  const Users& touch(const Operand& operand, bool write) {
    const int self = static_cast<int>(before_.size());
    Users before;
    known_.each_conflicting(operand, [&](const Users& met) {
      ++met_;
      for (const int other : met)
        if (write || writes_[static_cast<std::size_t>(other)]) before.insert(other);
    });
    for (const int other : Users(before)) before.merge(Users(before_[static_cast<std::size_t>(other)]));
    before_.push_back(std::move(before));
    writes_.push_back(write);
    note(operand, write, self);
    return before_.back();
  }

  int met() const { return met_; }

 private:
  void note(const Operand& operand, bool write, int self) {
    const int now = self + 1;
    if (!write) {
      known_.of(operand, now).insert(self);
    } else if (operand.tile.whole()) {
      known_ = {};
      known_.of(operand, now) = {self};
    } else {
      (forgets_ ? known_.write(operand, now) : known_.of(operand, now)) = {self};
    }
  }

  TileDependencies<Users> known_;
  std::vector<Users> before_;
  std::vector<bool> writes_;
  int met_ = 0;
  bool forgets_;
};

Operand rows_of(int buffer, RowTile tile) {
  return {BufferId(buffer), Bytes(0), Bytes(64), DType::kF32, tile};
}

TEST(TileDependencies, DroppedRecordsChangeNoDependency) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
  for (int run = 0; run < 300; ++run) {
    Place all(false), some(true);
    for (int touch = 0; touch < 60; ++touch) {
      const int count = 1 + below(4);
      const Operand operand = rows_of(below(3), {below(count), count, count > 1 ? below(2) : 0, 0});
      const bool write = below(2) == 0;
      ASSERT_EQ(some.touch(operand, write), all.touch(operand, write)) << "run " << run << ", " << touch;
    }
  }
}

TEST(TileDependencies, RecordsDoNotGrowWithTheNumberOfBuffers) {
  constexpr int kTiles = 4;
  const auto met_after = [](int buffers) {
    Place place(true);
    for (int b = 0; b < buffers; ++b)
      for (const bool write : {true, false})
        for (int t = 0; t < kTiles; ++t) place.touch(rows_of(b, {t, kTiles}), write);
    return place.met();
  };
  const int of_ten = met_after(20) - met_after(10);
  EXPECT_EQ(met_after(50) - met_after(40), of_ten);
}

}  // namespace
}  // namespace hyperrun::testing

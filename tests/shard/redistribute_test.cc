// redistribute(), compared with the cheapest way among all layouts, which is found by relaxing every pair of
// layouts until nothing improves.
#include "runtime/shard/redistribute.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "tests/shard/layouts.h"

namespace hyperrun::testing {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;

// The bytes that one device sends in a single collective or slice from `from` to `to`, found from the layouts
// alone.
class OneMove {
 public:
  OneMove(const std::vector<std::int64_t>& shape, const Mesh& mesh) : shape_(shape), mesh_(mesh) {}

  std::int64_t cost(const Layout& from, const Layout& to) const {
    const std::int64_t n = local(from);
    const AxisSet reduced{from.partial.bits & ~to.partial.bits};
    if ((to.partial.bits & ~from.partial.bits) != 0) return kNever;  // nothing becomes partial again
    const std::int64_t r = mesh_.size(reduced);
    std::vector<std::size_t> longer, shorter;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const AxisList &a = from.dims[d], &b = to.dims[d];
      if (a == b) continue;
      if (starts(b, a))
        longer.push_back(d);
      else if (starts(a, b))
        shorter.push_back(d);
      else
        return kNever;  // major axes stay where they are
    }
    if (longer.empty() && shorter.empty()) return reduced.empty() ? 0 : 2 * n * (r - 1) / r;  // all-reduce
    if (longer.size() == 1 && shorter.empty()) {
      const AxisList added = tail(to.dims[longer[0]], from.dims[longer[0]]);
      if (reduced.empty()) return 0;                         // slice
      return set_of(added) == reduced ? n - n / r : kNever;  // reduce-scatter
    }
    if (!reduced.empty()) return kNever;
    if (longer.empty() && shorter.size() == 1)  // all-gather
      return n * (mesh_.size(tail(from.dims[shorter[0]], to.dims[shorter[0]])) - 1);
    if (longer.size() == 1 && shorter.size() == 1) {  // all-to-all
      const AxisList moved = tail(from.dims[shorter[0]], to.dims[shorter[0]]);
      return moved == tail(to.dims[longer[0]], from.dims[longer[0]]) ? n - n / mesh_.size(moved) : kNever;
    }
    return kNever;
  }

 private:
  static bool starts(const AxisList& list, const AxisList& with) {
    return with.size() <= list.size() && std::equal(with.begin(), with.end(), list.begin());
  }
  static AxisList tail(const AxisList& list, const AxisList& after) {
    return {list.begin() + static_cast<std::ptrdiff_t>(after.size()), list.end()};
  }
  std::int64_t local(const Layout& l) const {
    std::int64_t n = 4;
    for (std::size_t d = 0; d < shape_.size(); ++d) n *= shape_[d] / mesh_.size(l.dims[d]);
    return n;
  }

  const std::vector<std::int64_t>& shape_;
  const Mesh& mesh_;
};

// cost[i][j]: the cheapest way from layout i to layout j in any number of steps.
std::vector<std::vector<std::int64_t>> cheapest(const std::vector<Layout>& layouts, const OneMove& move) {
  const std::size_t n = layouts.size();
  std::vector<std::vector<std::int64_t>> cost(n, std::vector<std::int64_t>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) cost[i][j] = i == j ? 0 : move.cost(layouts[i], layouts[j]);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) cost[i][j] = std::min(cost[i][j], cost[i][k] + cost[k][j]);
  return cost;
}

struct Setting {
  std::string name;
  std::vector<MeshAxis> axes;
  std::vector<std::int64_t> shape;
};

std::ostream& operator<<(std::ostream& out, const Setting& s) { return out << s.name; }

class Redistribute : public ::testing::TestWithParam<Setting> {
 protected:
  const Mesh mesh_{GetParam().axes};
  const std::vector<std::int64_t>& shape_ = GetParam().shape;
  const std::vector<Layout> layouts_ = all_layouts(shape_, mesh_);
};

TEST_P(Redistribute, CostsWhatTheCheapestWayCosts) {
  const auto cost = cheapest(layouts_, OneMove(shape_, mesh_));
  int reachable = 0;
  for (std::size_t i = 0; i < layouts_.size(); ++i)
    for (std::size_t j = 0; j < layouts_.size(); ++j) {
      if (cost[i][j] >= kNever) continue;
      ++reachable;
      const auto steps = redistribute(shape_, 4, layouts_[i], layouts_[j], mesh_);
      EXPECT_EQ(wire_bytes(steps).value, cost[i][j])
          << to_string(layouts_[i], mesh_) << " to " << to_string(layouts_[j], mesh_);
    }
  EXPECT_GT(reachable, 100);
}

// Each step is one legal operation with the right cost, and the last one reaches the goal.
TEST_P(Redistribute, EveryStepIsLegal) {
  const OneMove move(shape_, mesh_);
  const auto cost = cheapest(layouts_, move);
  for (std::size_t i = 0; i < layouts_.size(); ++i)
    for (std::size_t j = 0; j < layouts_.size(); ++j) {
      if (cost[i][j] >= kNever) continue;
      Layout at = layouts_[i];
      for (const RedistributionStep& step : redistribute(shape_, 4, layouts_[i], layouts_[j], mesh_)) {
        ASSERT_NE(std::find(layouts_.begin(), layouts_.end(), step.after), layouts_.end())
            << to_string(step.after, mesh_) << " does not divide, or uses an axis twice";
        EXPECT_EQ(step.wire.value, move.cost(at, step.after))
            << name(step.op) << " from " << to_string(at, mesh_) << " to " << to_string(step.after, mesh_);
        at = step.after;
      }
      EXPECT_EQ(at, layouts_[j]) << to_string(layouts_[i], mesh_);
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, Redistribute,
                         ::testing::Values(Setting{"a2b2", {{"a", 2}, {"b", 2}}, {8, 8, 8}},
                                           Setting{"a2b4", {{"a", 2}, {"b", 4}}, {8, 16, 8}},
                                           Setting{"a3b2", {{"a", 3}, {"b", 2}}, {6, 12}},
                                           Setting{"NotAllDivide", {{"a", 2}, {"b", 4}}, {4, 2, 8}},
                                           Setting{"a2b2c2", {{"a", 2}, {"b", 2}, {"c", 2}}, {8, 8}}),
                         [](const auto& info) { return info.param.name; });

TEST(RedistributeOne, MaximumIsReducedWholeAndNeverScattered) {
  const Mesh mesh{{{"a", 2}}};
  const Layout from{{{}, {}}, AxisSet{1}, Reduction::kMax}, to{{{0}, {}}, {}, Reduction::kSum};
  const auto steps = redistribute({8, 8}, 4, from, to, mesh);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].op, GraphOp(op::AllReduce{{0}, Reduction::kMax}));
  EXPECT_EQ(steps[1].op, GraphOp(op::Slice{{0}, 0}));
}

TEST(RedistributeOne, NothingToDo) {
  const Mesh mesh{{{"a", 2}}};
  EXPECT_TRUE(redistribute({8}, 4, Layout{{{0}}}, Layout{{{0}}}, mesh).empty());
}

// Over four axes thousands of layouts can be reached, many by slices that cost nothing. The search expands
// few.
TEST(RedistributeOne, FewLayoutsAreExpanded) {
  const Mesh mesh{{{"dp", 8}, {"cp", 2}, {"tpx", 8}, {"tpy", 2}}};
  const std::vector<std::int64_t> shape{64, 8192, 8, 16, 128};  // batch, seq, kv_heads, group, head_dim
  const AxisList dp{0}, cp{1}, tpx{2}, tpy{3};
  const AxisSet over_tpy{1u << 3};
  const std::vector<std::pair<Layout, Layout>> ways{
      {Layout::replicated(5), {{dp, cp, tpx, tpy, {}}}},
      {{{dp, cp, tpx, tpy, {}}}, Layout::replicated(5)},
      {{{dp, cp, tpx, {}, {}}, over_tpy}, {{dp, cp, tpx, {}, {}}}},
      {{{dp, cp, tpx, {}, {}}, over_tpy}, {{dp, {}, tpx, cp, {}}}},
      {{{dp, cp, tpx, {}, {}}}, {{dp, {}, tpx, cp, {}}}},
  };
  for (const auto& [from, to] : ways) {
    std::size_t expanded = 0;
    redistribute(shape, 4, from, to, mesh, {}, &expanded);
    EXPECT_LE(expanded, 64U) << to_string(from, mesh) << " to " << to_string(to, mesh);
  }
}

// A gradient that is partial over most axes. Thousands of layouts lie between its two layouts as well.
TEST(RedistributeOne, ReductionsAreInTheBound) {
  const Mesh mesh{{{"dp", 2}, {"ep", 8}, {"ring", 2}, {"cp", 4}, {"tpy", 2}, {"tpx", 2}}};
  const std::vector<std::int64_t> shape{6144, 8, 6, 128};  // hidden, kv_heads, group, head_dim
  const Layout from{{{4}, {5}, {}, {}}, AxisSet{0b1111}}, to{{{4}, {5}, {}, {}}};
  std::size_t expanded = 0;
  EXPECT_EQ(redistribute(shape, 4, from, to, mesh, {}, &expanded).size(), 1U);
  EXPECT_LE(expanded, 64U);
}

}  // namespace
}  // namespace hyperrun::testing

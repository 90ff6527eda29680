#include "runtime/shard/redistribute.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using Cost = std::pair<std::int64_t, int>;  // bytes, steps

// A layout as a string. For each dimension: its axes, one byte each (axis + 1), and a 0. Then the bits of
// partial axes, high byte first. Strings compare by the axes of dimensions, then by the bits.
using State = std::string;

constexpr std::size_t kPartialBytes = sizeof(AxisSet::bits);

char byte_of(AxisId a) { return static_cast<char>(a + 1); }
AxisId axis_of(char byte) { return static_cast<unsigned char>(byte) - 1; }

void set_partial(State& state, AxisSet partial) {
  for (std::size_t i = 0; i < kPartialBytes; ++i)
    state[state.size() - 1 - i] = static_cast<char>(partial.bits >> (8 * i) & 0xffu);
}

AxisSet partial_of(const State& state) {
  AxisSet partial;
  for (std::size_t i = 0; i < kPartialBytes; ++i)
    partial.bits |= std::uint32_t{static_cast<unsigned char>(state[state.size() - 1 - i])} << (8 * i);
  return partial;
}

State state_of(const Layout& layout) {
  State state;
  for (const AxisList& axes : layout.dims) {
    for (const AxisId a : axes) state.push_back(byte_of(a));
    state.push_back('\0');
  }
  state.append(kPartialBytes, '\0');
  set_partial(state, layout.partial);
  return state;
}

Layout layout_of(const State& state) {
  Layout layout;
  AxisList axes;
  for (std::size_t i = 0; i + kPartialBytes < state.size(); ++i)
    if (state[i] != 0)
      axes.push_back(axis_of(state[i]));
    else
      layout.dims.push_back(std::exchange(axes, {}));
  layout.partial = partial_of(state);
  return layout;
}

AxisList tail(const AxisList& list, std::size_t after) {
  return {list.begin() + static_cast<std::ptrdiff_t>(after), list.end()};
}

// The single operator that converts one layout to the other.
GraphOp operator_between(const Layout& from, const Layout& to, const Mesh& mesh) {
  int longer = -1, shorter = -1;
  for (std::size_t d = 0; d < from.dims.size(); ++d) {
    if (to.dims[d].size() > from.dims[d].size()) longer = static_cast<int>(d);
    if (to.dims[d].size() < from.dims[d].size()) shorter = static_cast<int>(d);
  }
  const AxisList reduced = mesh.list({from.partial.bits & ~to.partial.bits});
  if (!reduced.empty() && longer >= 0) return op::ReduceScatter{reduced, longer};
  if (!reduced.empty()) return op::AllReduce{reduced, from.reduction};
  const auto d = static_cast<std::size_t>(shorter >= 0 ? shorter : longer);
  if (shorter < 0) return op::Slice{tail(to.dims[d], from.dims[d].size()), longer};
  const AxisList moved = tail(from.dims[d], to.dims[d].size());
  if (longer < 0) return op::AllGather{moved, shorter};
  return op::AllToAll{moved, shorter, longer};
}

// A* search: expands layouts in the order of their cost plus a lower bound of the remaining cost. The bound
// is consistent, so a layout's cost is final when it is expanded. Ties between predecessors go to the cheaper
// layout, then to the first in string order. Every layout on some cheapest way is expanded, so a tighter
// bound changes no result.
class Search {
 public:
  Search(const std::vector<std::int64_t>& shape, std::int64_t element, const Layout& from, const Layout& to,
         const Mesh& mesh, AxisSet unshared)
      : shape_(shape),
        from_(from),
        to_(to),
        mesh_(mesh),
        unshared_(unshared),
        local_(local_bytes(from, element)),
        local_goal_(local_bytes(to, element)),
        knows_reductions_(local_ % (parts_to_reduce(state_of(from_)) * free_parts(state_of(from_))) == 0) {}

  std::vector<RedistributionStep> run() {
    if (const std::optional<std::size_t> d = gathered()) return gather(*d);
    best_ = plain_way(local_);
    reach(state_of(from_), local_, {0, 0}, -1);
    while (!open_.empty() && open_.top().first <= best_) {
      const int number = open_.top().second;
      open_.pop();
      if (!std::exchange(reached(number).expanded, true)) expand(number);
    }
    const auto found = numbers_.find(goal_);
    HR_CHECK(found != numbers_.end(),
             "no way from " + to_string(from_, mesh_) + " to " + to_string(to_, mesh_));
    return path(found->second);
  }

  std::size_t expanded() const { return expanded_; }

 private:
  struct Reached {
    State state;
    std::int64_t local;  // bytes on one device
    Cost cost;
    int previous;  // number; -1: none
    bool expanded = false;
  };

  // The layout that is being expanded.
  struct Opened {
    Reached reached;
    int number;
    std::vector<std::size_t> begins, ends;  // by dimension: range of its axes in the state
    std::vector<std::int64_t> parts;        // by dimension
    AxisSet partial, used;
  };

  Reached& reached(int number) { return reached_[static_cast<std::size_t>(number)]; }

  std::int64_t local_bytes(const Layout& l, std::int64_t element) const {
    std::int64_t n = element;
    for (std::size_t d = 0; d < shape_.size(); ++d) n *= shape_[d] / mesh_.size(l.dims[d]);
    return n;
  }

  // The dimension whose minor-most axes are gathered, if nothing else differs. A single all-gather is optimal
  // then.
  std::optional<std::size_t> gathered() const {
    std::optional<std::size_t> longer;
    if (from_.partial != to_.partial) return longer;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const AxisList &is = from_.dims[d], &wanted = to_.dims[d];
      if (is == wanted) continue;
      if (longer || std::ranges::mismatch(is, wanted).in2 != wanted.end()) return std::nullopt;
      longer = d;
    }
    return longer;
  }

  std::vector<RedistributionStep> gather(std::size_t d) {
    Layout after = to_;
    after.reduction = from_.reduction;
    GraphOp op = operator_between(from_, after, mesh_);
    const std::int64_t p = mesh_.size(tail(from_.dims[d], to_.dims[d].size()));
    return {{std::move(op), std::move(after), Bytes(local_goal_ / p * (p - 1))}};
  }

  static constexpr Cost kNone{std::numeric_limits<std::int64_t>::max(), 0};

  // An upper bound: the cost to reduce, gather each dimension's differing axes, and slice. This is always
  // possible without unshared axes.
  Cost plain_way(std::int64_t local) const {
    if (!unshared_.empty()) return kNone;
    Cost cost{0, 0};
    if (const AxisSet reduced{from_.partial.bits & ~to_.partial.bits}; !reduced.empty()) {
      const std::int64_t p = mesh_.size(reduced);
      cost = {2 * local * (p - 1) / p, 1};
    }
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const AxisList &is = from_.dims[d], &wanted = to_.dims[d];
      const auto same = std::ranges::mismatch(is, wanted).in1;
      const std::int64_t p = mesh_.size(AxisList(same, is.end()));
      cost.first += local * (p - 1);
      cost.second += static_cast<int>((same == is.end() ? 0 : 1) + std::ssize(wanted) - (same - is.begin()));
      local *= p;
    }
    return cost;
  }

  // Whether a step of so many bytes exceeds the best known cost, whatever layout it leads to.
  bool too_far(const Opened& from, std::int64_t local, std::int64_t bytes) const {
    return from.reached.cost.first + bytes + std::max<std::int64_t>(local_goal_ - local, 0) > best_.first;
  }

  AxisSet used_by(const State& state) const {
    AxisSet used = partial_of(state);
    for (std::size_t i = 0; i + kPartialBytes < state.size(); ++i)
      if (state[i] != 0) used.add(axis_of(state[i]));
    return used;
  }

  std::int64_t parts_to_reduce(const State& state) const {
    return mesh_.size(AxisSet{partial_of(state).bits & ~to_.partial.bits});
  }

  // The number of slices that a device can cut its part into without communication.
  std::int64_t free_parts(const State& state) const {
    const AxisSet used = used_by(state);
    std::int64_t parts = 1;
    for (AxisId a = 0; a < mesh_.rank(); ++a)
      if (!used.has(a) && !unshared_.has(a)) parts *= mesh_.size(a);
    return parts;
  }

  // A lower bound of the bytes still to send. Let the device have n bytes now and g at the goal.
  //   Nothing to reduce: only all-gathers enlarge the part, and they send what they add: g - n.
  //   Partial over p devices: the best is to slice into all f free slices, then reduce-scatter, which sends
  //     n / f * (1 - 1 / p), and gather, which sends g - n / f / p. The sum is g + n / f * (1 - 2 / p). An
  //     all-reduce sends as much as its two halves.
  //
  // No step lowers the bound by more than it sends, so it is consistent. If f * p divides n at the start, it
  // does so on all ways: n / f / p is constant, or larger with unshared axes.
  std::int64_t least_bytes(const State& state, std::int64_t local) const {
    const std::int64_t p = knows_reductions_ ? parts_to_reduce(state) : 1;
    if (p == 1) return std::max<std::int64_t>(local_goal_ - local, 0);
    return local_goal_ + local / free_parts(state) / p * (p - 2);
  }

  // A lower bound of the remaining cost. A step appends axes to one dimension at most, which bounds the
  // steps.
  Cost left(const State& state, std::int64_t local) const {
    if (state == goal_) return {0, 0};
    int lacking = 0;
    for (std::size_t d = 0, s = 0, g = 0; d < shape_.size(); ++d) {
      const std::size_t wanted = goal_.find('\0', g) - g;
      if (state.compare(s, wanted, goal_, g, wanted) != 0) ++lacking;
      s = state.find('\0', s) + 1;
      g += wanted + 1;
    }
    return {least_bytes(state, local), std::max(lacking, 1)};
  }

  void reach(State state, std::int64_t local, Cost cost, int previous) {
    const Cost rest = left(state, local), whole{cost.first + rest.first, cost.second + rest.second};
    if (whole > best_) return;
    const auto [entry, is_new] = numbers_.try_emplace(state, static_cast<int>(reached_.size()));
    const int number = entry->second;
    if (is_new) {
      reached_.push_back({std::move(state), local, cost, previous});
    } else {
      Reached& known = reached(number);
      if (cost > known.cost || (cost == known.cost && !comes_before(previous, known.previous))) return;
      known.previous = previous;
      if (cost == std::exchange(known.cost, cost)) return;
    }
    if (rest == Cost{0, 0}) best_ = cost;
    open_.emplace(whole, number);
  }

  bool comes_before(int a, int b) {
    return std::tie(reached(a).cost, reached(a).state) < std::tie(reached(b).cost, reached(b).state);
  }

  void move(const Opened& from, State to, std::int64_t local, std::int64_t bytes) {
    const Cost cost = from.reached.cost;
    reach(std::move(to), local, {cost.first + bytes, cost.second + 1}, from.number);
  }

  Opened opened(int number) {
    Opened at{reached(number), number, {}, {}, {}, {}, {}};
    const State& state = at.reached.state;
    for (std::size_t d = 0, begin = 0; d < shape_.size(); ++d) {
      std::size_t end = begin;
      std::int64_t parts = 1;
      for (; state[end] != 0; ++end) {
        at.used.add(axis_of(state[end]));
        parts *= mesh_.size(axis_of(state[end]));
      }
      at.begins.push_back(begin);
      at.ends.push_back(end);
      at.parts.push_back(parts);
      begin = end + 1;
    }
    at.partial = partial_of(state);
    at.used = at.used | at.partial;
    return at;
  }

  void expand(int number) {
    ++expanded_;
    const Opened at = opened(number);
    reduce_all(at);
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (from_.reduction == Reduction::kSum) scatter_one(at, d);
      slice_one(at, d);
      move_suffixes(at, d);
    }
  }

  bool divides(const Opened& at, std::size_t d, std::int64_t p) const {
    return shape_[d] % (at.parts[d] * p) == 0;
  }

  void reduce_all(const Opened& at) {
    const std::int64_t n = at.reached.local;
    for (std::uint32_t subset = at.partial.bits; subset != 0; subset = (subset - 1) & at.partial.bits) {
      const std::int64_t p = mesh_.size(AxisSet{subset}), bytes = 2 * n * (p - 1) / p;
      if (too_far(at, n, bytes)) continue;
      State next = at.reached.state;
      set_partial(next, {at.partial.bits & ~subset});
      move(at, std::move(next), n, bytes);
    }
  }

  // Reduce-scatters one axis onto a dimension.
  void scatter_one(const Opened& at, std::size_t d) {
    for (AxisId a = 0; a < mesh_.rank(); ++a) {
      const std::int64_t p = mesh_.size(a), n = at.reached.local / p;
      if (!at.partial.has(a) || !divides(at, d, p) || too_far(at, n, n * (p - 1))) continue;
      State next = at.reached.state;
      AxisSet partial = at.partial;
      partial.remove(a);
      set_partial(next, partial);
      next.insert(at.ends[d], 1, byte_of(a));
      move(at, std::move(next), n, n * (p - 1));
    }
  }

  void slice_one(const Opened& at, std::size_t d) {
    for (AxisId a = 0; a < mesh_.rank(); ++a) {
      const std::int64_t p = mesh_.size(a);
      if (at.used.has(a) || unshared_.has(a) || p == 1 || !divides(at, d, p)) continue;
      if (too_far(at, at.reached.local / p, 0)) continue;
      State next = at.reached.state;
      next.insert(at.ends[d], 1, byte_of(a));
      move(at, std::move(next), at.reached.local / p, 0);
    }
  }

  // Gathers one or several minor-most axes of a dimension, or moves them by an all-to-all behind the axes of
  // another. Several axes at once send less than one after another.
  void move_suffixes(const Opened& at, std::size_t d) {
    std::int64_t p = 1;
    for (std::size_t begin = at.ends[d]; begin-- > at.begins[d];) {
      p *= mesh_.size(axis_of(at.reached.state[begin]));
      const std::int64_t n = at.reached.local;
      const bool may_move = !too_far(at, n, n / p * (p - 1)), may_gather = !too_far(at, n * p, n * (p - 1));
      if (!may_move && !may_gather) continue;
      const State axes = at.reached.state.substr(begin, at.ends[d] - begin);
      State without = at.reached.state;
      without.erase(begin, axes.size());
      for (std::size_t e = 0; may_move && e < shape_.size(); ++e) {
        if (e == d || !divides(at, e, p)) continue;
        State next = without;
        next.insert(at.ends[e] - (e > d ? axes.size() : 0), axes);
        move(at, std::move(next), n, n / p * (p - 1));
      }
      if (may_gather) move(at, std::move(without), n * p, n * (p - 1));
    }
  }

  // Collects the steps backwards from the goal.
  std::vector<RedistributionStep> path(int number) {
    std::vector<RedistributionStep> steps;
    Layout after = to_layout(number);
    for (int before = reached(number).previous; before >= 0; before = reached(number).previous) {
      Layout at = to_layout(before);
      const std::int64_t bytes = reached(number).cost.first - reached(before).cost.first;
      GraphOp op = operator_between(at, after, mesh_);
      steps.push_back({std::move(op), std::exchange(after, std::move(at)), Bytes(bytes)});
      number = before;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  // Remaining partial axes keep the kind of reduction.
  Layout to_layout(int number) {
    Layout layout = layout_of(reached(number).state);
    if (!layout.partial.empty() || from_.partial.empty()) layout.reduction = from_.reduction;
    return layout;
  }

  const std::vector<std::int64_t>& shape_;
  const Layout& from_;
  const Layout& to_;
  const Mesh& mesh_;
  const AxisSet unshared_;
  const std::int64_t local_, local_goal_;  // bytes on one device
  const bool knows_reductions_;            // least_bytes() may use the bound for partial results
  const State goal_ = state_of(to_);
  Cost best_ = kNone;  // an upper bound, or the cost of the best way found
  std::size_t expanded_ = 0;
  std::vector<Reached> reached_;
  std::unordered_map<State, int> numbers_;  // in `reached_`
  std::priority_queue<std::pair<Cost, int>, std::vector<std::pair<Cost, int>>, std::greater<>> open_;
};

}  // namespace

std::vector<RedistributionStep> redistribute(const std::vector<std::int64_t>& shape, std::int64_t element,
                                             const Layout& from, const Layout& to, const Mesh& mesh,
                                             AxisSet unshared, std::size_t* expanded) {
  Search search(shape, element, from, to, mesh, unshared);
  std::vector<RedistributionStep> steps = search.run();
  if (expanded != nullptr) *expanded = search.expanded();
  return steps;
}

Bytes wire_bytes(const std::vector<RedistributionStep>& steps) {
  Bytes total{};
  for (const RedistributionStep& s : steps) total += s.wire;
  return total;
}

}  // namespace hyperrun

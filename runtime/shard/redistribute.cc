#include "runtime/shard/redistribute.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using Key = std::pair<std::vector<AxisList>, std::uint32_t>;
using Cost = std::pair<std::int64_t, int>;  // bytes, steps

Key key_of(const Layout& l) { return {l.dims, l.partial.bits}; }

class Search {
 public:
  Search(const std::vector<std::int64_t>& shape, std::int64_t element, const Layout& from, const Layout& to,
         const Mesh& mesh, AxisSet apart)
      : shape_(shape), element_(element), from_(from), to_(to), mesh_(mesh), apart_(apart) {}

  std::vector<RedistributionStep> run() {
    reach(from_, {0, 0}, {}, {});
    while (!open_.empty()) {
      const auto [cost, key] = open_.top();
      open_.pop();
      if (cost > best_.at(key).cost) continue;
      if (key == key_of(to_)) return path(key);
      expand(best_.at(key).layout, cost, key);
    }
    HR_CHECK(false, "no way from " + to_string(from_, mesh_) + " to " + to_string(to_, mesh_));
    return {};
  }

 private:
  struct Reached {
    Layout layout;
    Cost cost;
    Key previous;
    RedistributionStep step;
  };

  std::int64_t local_bytes(const Layout& l) const {
    std::int64_t n = element_;
    for (std::size_t d = 0; d < shape_.size(); ++d) n *= shape_[d] / mesh_.size(l.dims[d]);
    return n;
  }

  bool divides(const Layout& l) const {
    for (std::size_t d = 0; d < shape_.size(); ++d)
      if (shape_[d] % mesh_.size(l.dims[d]) != 0) return false;
    return true;
  }

  void reach(const Layout& layout, Cost cost, const Key& previous, RedistributionStep step) {
    const Key key = key_of(layout);
    const auto known = best_.find(key);
    if (known != best_.end() && known->second.cost <= cost) return;
    best_[key] = Reached{layout, cost, previous, std::move(step)};
    open_.emplace(cost, key);
  }

  void move(const Layout& next, Cost cost, const Key& key, GraphOp op, std::int64_t bytes) {
    if (divides(next))
      reach(next, {cost.first + bytes, cost.second + 1}, key, {std::move(op), next, Bytes(bytes)});
  }

  void expand(const Layout& at, Cost cost, const Key& key) {
    const std::int64_t n = local_bytes(at);
    reduce_all(at, cost, key, n);
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      for (AxisId a : mesh_.list(at.partial)) {  // reduce-scatter one axis onto a dimension
        if (at.reduction != Reduction::kSum) break;
        Layout next = at;
        next.partial.remove(a);
        next.dims[d].push_back(a);
        const std::int64_t p = mesh_.size(a);
        move(next, cost, key, op::ReduceScatter{{a}, static_cast<int>(d)}, n / p * (p - 1));
      }
      slice_one(at, cost, key, d);
      gather_suffixes(at, cost, key, d, n);
      exchange_suffixes(at, cost, key, d, n);
    }
  }

  void reduce_all(const Layout& at, Cost cost, const Key& key, std::int64_t n) {
    const AxisList axes = mesh_.list(at.partial);
    for (std::uint32_t subset = 1; subset < (1u << axes.size()); ++subset) {
      Layout next = at;
      AxisList reduced;
      for (std::size_t i = 0; i < axes.size(); ++i)
        if ((subset >> i) & 1u) reduced.push_back(axes[i]), next.partial.remove(axes[i]);
      if (next.partial.empty()) next.reduction = Reduction::kSum;
      const std::int64_t p = mesh_.size(reduced);
      move(next, cost, key, op::AllReduce{reduced, at.reduction}, 2 * n * (p - 1) / p);
    }
  }

  void slice_one(const Layout& at, Cost cost, const Key& key, std::size_t d) {
    const AxisSet used = at.used();
    for (AxisId a = 0; a < mesh_.rank(); ++a) {
      if (used.has(a) || apart_.has(a) || mesh_.size(a) == 1) continue;
      Layout next = at;
      next.dims[d].push_back(a);
      move(next, cost, key, op::Slice{{a}, static_cast<int>(d)}, 0);
    }
  }

  // All-gather of the minor-most axes of a dimension, one or several in one collective.
  void gather_suffixes(const Layout& at, Cost cost, const Key& key, std::size_t d, std::int64_t n) {
    for (std::size_t keep = 0; keep < at.dims[d].size(); ++keep) {
      Layout next = at;
      const AxisList gathered(next.dims[d].begin() + static_cast<std::ptrdiff_t>(keep), next.dims[d].end());
      next.dims[d].resize(keep);
      move(next, cost, key, op::AllGather{gathered, static_cast<int>(d)}, n * (mesh_.size(gathered) - 1));
    }
  }

  // All-to-all of the minor-most axes of a dimension, which become the minor-most of another. Several at
  // once move less than one after the other.
  void exchange_suffixes(const Layout& at, Cost cost, const Key& key, std::size_t d, std::int64_t n) {
    for (std::size_t keep = 0; keep < at.dims[d].size(); ++keep)
      for (std::size_t e = 0; e < shape_.size(); ++e) {
        if (e == d) continue;
        Layout next = at;
        const AxisList moved(next.dims[d].begin() + static_cast<std::ptrdiff_t>(keep), next.dims[d].end());
        next.dims[d].resize(keep);
        next.dims[e].insert(next.dims[e].end(), moved.begin(), moved.end());
        const std::int64_t p = mesh_.size(moved);
        move(next, cost, key, op::AllToAll{moved, static_cast<int>(d), static_cast<int>(e)}, n / p * (p - 1));
      }
  }

  std::vector<RedistributionStep> path(Key key) {
    std::vector<RedistributionStep> steps;
    while (key != key_of(from_)) {
      Reached& r = best_.at(key);
      steps.push_back(r.step);
      key = r.previous;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  const std::vector<std::int64_t>& shape_;
  std::int64_t element_;
  const Layout& from_;
  const Layout& to_;
  const Mesh& mesh_;
  AxisSet apart_;
  std::map<Key, Reached> best_;
  std::priority_queue<std::pair<Cost, Key>, std::vector<std::pair<Cost, Key>>, std::greater<>> open_;
};

}  // namespace

std::vector<RedistributionStep> redistribute(const std::vector<std::int64_t>& shape, std::int64_t element,
                                             const Layout& from, const Layout& to, const Mesh& mesh,
                                             AxisSet apart) {
  return Search(shape, element, from, to, mesh, apart).run();
}

Bytes wire_bytes(const std::vector<RedistributionStep>& steps) {
  Bytes total{};
  for (const RedistributionStep& s : steps) total += s.wire;
  return total;
}

}  // namespace hyperrun

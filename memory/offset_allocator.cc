#include "memory/offset_allocator.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using Offset = std::int64_t;

// A lifetime over compressed positions: 0 .. positions - 1, each the first or last of some buffer.
struct Item {
  std::int32_t first, last;
  Offset bytes;  // aligned
};

struct Problem {
  std::vector<Item> items;
  std::int32_t positions = 0;
};

struct Placement {
  std::vector<Offset> offsets;
  Offset peak = 0;
};

// Exact gap search looks at every pair of buffers that meet; beyond this many it is left out.
constexpr std::int64_t kMaxPairs = 10'000'000;

Problem compress(std::span<const Lifetime> lifetimes, Offset alignment) {
  std::vector<std::int32_t> points;
  for (const Lifetime& l : lifetimes) {
    HR_CHECK(l.first <= l.last && l.bytes.value >= 0);
    points.push_back(l.first);
    points.push_back(l.last);
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  auto place = [&](std::int32_t p) {
    return static_cast<std::int32_t>(std::lower_bound(points.begin(), points.end(), p) - points.begin());
  };
  Problem problem{.items = {}, .positions = static_cast<std::int32_t>(points.size())};
  for (const Lifetime& l : lifetimes) {
    const Offset bytes = (l.bytes.value + alignment - 1) / alignment * alignment;
    problem.items.push_back({place(l.first), place(l.last), bytes});
  }
  return problem;
}

template <class Before>
std::vector<std::int32_t> order_by(const Problem& p, Before before) {
  std::vector<std::int32_t> order(p.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    const auto ka = before(p.items[static_cast<std::size_t>(a)]);
    const auto kb = before(p.items[static_cast<std::size_t>(b)]);
    return ka != kb ? ka > kb : a < b;
  });
  return order;
}

std::int64_t overlapping_pairs(const Problem& p) {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(p.positions) + 1), ends(starts.size());
  for (const Item& i : p.items) {
    ++starts[static_cast<std::size_t>(i.first)];
    ++ends[static_cast<std::size_t>(i.last) + 1];
  }
  std::int64_t live = 0, pairs = 0;
  for (std::size_t t = 0; t < starts.size(); ++t) {
    live -= ends[t];
    pairs += starts[t] * live + starts[t] * (starts[t] - 1) / 2;
    live += starts[t];
  }
  return pairs;
}

// Placed buffers, found by time: those that start within a range, and those that cover a position (kept in
// the canonical nodes of a segment tree).
class PlacedIndex {
 public:
  explicit PlacedIndex(std::int32_t positions)
      : leaves_(std::max(positions, 1)),
        nodes_(2 * static_cast<std::size_t>(leaves_)),
        by_first_(nodes_.size()) {}

  void add(std::int32_t id, const Item& item) {
    by_first_[static_cast<std::size_t>(item.first)].push_back(id);
    for (std::int32_t l = item.first + leaves_, r = item.last + leaves_ + 1; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) nodes_[static_cast<std::size_t>(l++)].push_back(id);
      if (r % 2 == 1) nodes_[static_cast<std::size_t>(--r)].push_back(id);
    }
  }

  template <class Visit>
  void for_each_overlap(const Item& item, Visit visit) const {
    for (std::int32_t n = item.first + leaves_; n > 0; n /= 2) {
      for (const std::int32_t id : nodes_[static_cast<std::size_t>(n)]) visit(id);
    }
    for (std::int32_t t = item.first + 1; t <= item.last; ++t) {
      for (const std::int32_t id : by_first_[static_cast<std::size_t>(t)]) visit(id);
    }
  }

 private:
  std::int32_t leaves_;
  std::vector<std::vector<std::int32_t>> nodes_, by_first_;
};

// The smallest gap between the extents that is large enough, or their end. Sorts the extents.
Offset best_fit(std::vector<std::pair<Offset, Offset>>& extents, Offset bytes) {
  std::sort(extents.begin(), extents.end());
  Offset top = 0, best = -1, best_gap = 0;
  for (const auto& [begin, end] : extents) {
    const Offset gap = begin - top;
    if (gap >= bytes && (best < 0 || gap < best_gap)) best = top, best_gap = gap;
    top = std::max(top, end);
  }
  return best >= 0 ? best : top;
}

// Places in the given order, each buffer in the best gap left by those before it.
Placement place_in_gaps(const Problem& p, const std::vector<std::int32_t>& order) {
  Placement result{.offsets = std::vector<Offset>(p.items.size()), .peak = 0};
  PlacedIndex placed(p.positions);
  std::vector<std::pair<Offset, Offset>> extents;
  for (const std::int32_t id : order) {
    const Item& item = p.items[static_cast<std::size_t>(id)];
    if (item.bytes == 0) continue;
    extents.clear();
    placed.for_each_overlap(item, [&](std::int32_t other) {
      const Offset begin = result.offsets[static_cast<std::size_t>(other)];
      extents.emplace_back(begin, begin + p.items[static_cast<std::size_t>(other)].bytes);
    });
    const Offset offset = best_fit(extents, item.bytes);
    result.offsets[static_cast<std::size_t>(id)] = offset;
    result.peak = std::max(result.peak, offset + item.bytes);
    placed.add(id, item);
  }
  return result;
}

// The height of the placed buffers over every position: range maximum and range assignment.
class Skyline {
 public:
  explicit Skyline(std::int32_t positions) {
    while (leaves_ < positions) leaves_ *= 2;
    highest_.resize(2 * static_cast<std::size_t>(leaves_));
    assigned_.assign(highest_.size(), -1);
  }

  Offset highest(std::int32_t first, std::int32_t last) { return query(1, 0, leaves_ - 1, first, last); }
  void raise(std::int32_t first, std::int32_t last, Offset to) { assign(1, 0, leaves_ - 1, first, last, to); }

 private:
  void set(std::size_t node, Offset to) { highest_[node] = assigned_[node] = to; }

  void push(std::size_t node) {
    if (assigned_[node] < 0) return;
    set(2 * node, assigned_[node]);
    set(2 * node + 1, assigned_[node]);
    assigned_[node] = -1;
  }

  Offset query(std::size_t node, std::int32_t l, std::int32_t r, std::int32_t first, std::int32_t last) {
    if (last < l || r < first) return 0;
    if (first <= l && r <= last) return highest_[node];
    push(node);
    const std::int32_t mid = l + (r - l) / 2;
    return std::max(query(2 * node, l, mid, first, last), query(2 * node + 1, mid + 1, r, first, last));
  }

  void assign(std::size_t node, std::int32_t l, std::int32_t r, std::int32_t first, std::int32_t last,
              Offset to) {
    if (last < l || r < first) return;
    if (first <= l && r <= last) return set(node, to);
    push(node);
    const std::int32_t mid = l + (r - l) / 2;
    assign(2 * node, l, mid, first, last, to);
    assign(2 * node + 1, mid + 1, r, first, last, to);
    highest_[node] = std::max(highest_[2 * node], highest_[2 * node + 1]);
  }

  std::int32_t leaves_ = 1;
  std::vector<Offset> highest_, assigned_;
};

// Stacks in the given order, never below what is already there. Exact for nested lifetimes (activations of
// a forward and backward pass) placed long-lived first; takes any number of buffers.
Placement place_on_skyline(const Problem& p, const std::vector<std::int32_t>& order) {
  Placement result{.offsets = std::vector<Offset>(p.items.size()), .peak = 0};
  Skyline skyline(p.positions);
  for (const std::int32_t id : order) {
    const Item& item = p.items[static_cast<std::size_t>(id)];
    if (item.bytes == 0) continue;
    const Offset offset = skyline.highest(item.first, item.last);
    skyline.raise(item.first, item.last, offset + item.bytes);
    result.offsets[static_cast<std::size_t>(id)] = offset;
    result.peak = std::max(result.peak, offset + item.bytes);
  }
  return result;
}

// Free extents below the top, by offset and by size.
class FreeList {
 public:
  Offset take(Offset bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) return extend(bytes);
    const auto [size, offset] = *fit;
    remove(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void give(Offset offset, Offset bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      const Offset size = next->second;
      remove(offset + bytes, size);
      bytes += size;
    }
    auto previous = by_offset_.lower_bound(offset);
    if (previous != by_offset_.begin() && (--previous)->first + previous->second == offset) {
      const auto [begin, size] = *previous;
      remove(begin, size);
      offset = begin;
      bytes += size;
    }
    insert(offset, bytes);
  }

  Offset top() const { return top_; }

 private:
  // Grows the top by what a free extent that touches it lacks.
  Offset extend(Offset bytes) {
    Offset offset = top_;
    if (!by_offset_.empty()) {
      const auto [begin, size] = *by_offset_.rbegin();
      if (begin + size == top_) {
        remove(begin, size);
        offset = begin;
      }
    }
    top_ = offset + bytes;
    return offset;
  }
  void insert(Offset offset, Offset bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(Offset offset, Offset bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  Offset top_ = 0;
  std::map<Offset, Offset> by_offset_;
  std::set<std::pair<Offset, Offset>> by_size_;
};

// Plays the program through a best-fit allocator, in time order.
Placement place_in_time(const Problem& p) {
  Placement result{.offsets = std::vector<Offset>(p.items.size()), .peak = 0};
  const auto by_first = order_by(p, [](const Item& i) { return std::pair(-i.first, i.bytes); });
  const auto by_last = order_by(p, [](const Item& i) { return -i.last; });
  FreeList free;
  std::size_t ended = 0;
  for (const std::int32_t id : by_first) {
    const Item& item = p.items[static_cast<std::size_t>(id)];
    for (; p.items[static_cast<std::size_t>(by_last[ended])].last < item.first; ++ended) {
      const auto gone = static_cast<std::size_t>(by_last[ended]);
      if (p.items[gone].bytes > 0) free.give(result.offsets[gone], p.items[gone].bytes);
    }
    if (item.bytes > 0) result.offsets[static_cast<std::size_t>(id)] = free.take(item.bytes);
  }
  result.peak = free.top();
  return result;
}

void keep_better(Placement& best, Placement other) {
  if (other.peak < best.peak) best = std::move(other);
}

Offset max_live(const Problem& p) {
  std::vector<Offset> change(static_cast<std::size_t>(p.positions) + 1);
  for (const Item& i : p.items) {
    change[static_cast<std::size_t>(i.first)] += i.bytes;
    change[static_cast<std::size_t>(i.last) + 1] -= i.bytes;
  }
  Offset live = 0, most = 0;
  for (const Offset c : change) most = std::max(most, live += c);
  return most;
}

std::int64_t length(const Item& i) { return i.last - i.first; }

}  // namespace

Assignment assign_offsets(std::span<const Lifetime> lifetimes, Bytes alignment, Bytes enough) {
  HR_CHECK(alignment.value > 0 && (alignment.value & (alignment.value - 1)) == 0);
  const Problem p = compress(lifetimes, alignment.value);
  const Offset bound = std::max(max_live(p), enough.value);
  const auto by_size = order_by(p, [](const Item& i) { return std::pair(i.bytes, length(i)); });
  const auto by_length = order_by(p, [](const Item& i) { return std::pair(length(i), i.bytes); });
  Placement best = place_on_skyline(p, by_length);
  if (best.peak > bound) keep_better(best, place_in_time(p));
  if (best.peak > bound && overlapping_pairs(p) <= kMaxPairs) {
    keep_better(best, place_in_gaps(p, by_size));
    if (best.peak > bound) keep_better(best, place_in_gaps(p, by_length));
  } else if (best.peak > bound) {
    keep_better(best, place_on_skyline(p, by_size));
  }
  Assignment result{.offsets = {}, .peak = Bytes(best.peak)};
  for (const Offset o : best.offsets) result.offsets.emplace_back(o);
  return result;
}

Bytes max_live(std::span<const Lifetime> lifetimes, Bytes alignment) {
  return Bytes(max_live(compress(lifetimes, alignment.value)));
}

}  // namespace hyperrun

#include "memory/offset_allocator.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <limits>
#include <map>
#include <memory_resource>
#include <set>
#include <type_traits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/interval_map.h"
#include "runtime/base/time_limit.h"

namespace hyperrun {
namespace {

using Offset = std::int64_t;

// A lifetime over compressed positions. Only positions at which some buffer begins or ends are numbered.
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

Problem compress(std::span<const Lifetime> lifetimes, Offset alignment) {
  std::int32_t least = std::numeric_limits<std::int32_t>::max(),
               most = std::numeric_limits<std::int32_t>::min();
  for (const Lifetime& l : lifetimes) {
    HR_CHECK(l.first <= l.last && l.bytes.value >= 0);
    least = std::min(least, l.first);
    most = std::max(most, l.last);
  }
  if (lifetimes.empty()) return {};
  // Dense tables suit: at most instructions of a program some buffer begins or ends.
  const auto at = [&](std::int32_t p) { return static_cast<std::size_t>(std::int64_t{p} - least); };
  std::vector<std::int32_t> place(at(most) + 1);
  for (const Lifetime& l : lifetimes) place[at(l.first)] = place[at(l.last)] = 1;
  std::int32_t positions = 0;
  for (std::int32_t& p : place)
    if (p != 0) p = positions++;
  Problem problem{.items = {}, .positions = positions};
  problem.items.reserve(lifetimes.size());
  for (const Lifetime& l : lifetimes) {
    const Offset bytes = (l.bytes.value + alignment - 1) / alignment * alignment;
    problem.items.push_back({place[at(l.first)], place[at(l.last)], bytes});
  }
  return problem;
}

// Item numbers by descending key.
template <class Key>
std::vector<std::int32_t> order_by(const Problem& p, Key key_of) {
  struct Entry {
    std::invoke_result_t<Key, const Item&> key;
    std::int32_t id;
  };
  std::vector<Entry> entries;
  entries.reserve(p.items.size());
  for (const Item& item : p.items)
    entries.push_back({key_of(item), static_cast<std::int32_t>(entries.size())});
  std::ranges::sort(
      entries, [](const Entry& a, const Entry& b) { return a.key != b.key ? a.key > b.key : a.id < b.id; });
  std::vector<std::int32_t> order;
  order.reserve(entries.size());
  for (const Entry& e : entries) order.push_back(e.id);
  return order;
}

// Item numbers by ascending first or last position.
std::vector<std::int32_t> order_by_position(const Problem& p, std::int32_t Item::*position) {
  std::vector<std::int32_t> next(static_cast<std::size_t>(p.positions) + 1), order(p.items.size());
  for (const Item& item : p.items) ++next[static_cast<std::size_t>(item.*position) + 1];
  for (std::size_t k = 1; k < next.size(); ++k) next[k] += next[k - 1];
  for (std::size_t id = 0; id < p.items.size(); ++id)
    order[static_cast<std::size_t>(next[static_cast<std::size_t>(p.items[id].*position)]++)] =
        static_cast<std::int32_t>(id);
  return order;
}

// Item numbers by first position; at one position the largest comes first.
std::vector<std::int32_t> order_in_time(const Problem& p) {
  std::vector<std::int32_t> order = order_by_position(p, &Item::first);
  const auto item = [&](std::int32_t id) -> const Item& { return p.items[static_cast<std::size_t>(id)]; };
  for (auto begin = order.begin(); begin != order.end();) {
    auto end = begin;
    while (end != order.end() && item(*end).first == item(*begin).first) ++end;
    std::stable_sort(begin, end,
                     [&](std::int32_t a, std::int32_t b) { return item(a).bytes > item(b).bytes; });
    begin = end;
  }
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

struct Extent {
  Offset begin, end;
  auto operator<=>(const Extent&) const = default;
};

// Best fit: the smallest sufficient gap between extents, or the end of the last. Extents come in ascending
// order.
class BestFit {
 public:
  explicit BestFit(Offset bytes) : bytes_(bytes) {}

  // Extents with `lives` false are ignored. A mask is faster than a branch that cannot be predicted.
  void pass(const Extent& extent, bool lives) {
    const Offset mask = -Offset{lives};
    const Offset gap = (extent.begin - top_) & mask;
    if (gap >= bytes_ && gap < best_gap_) best_ = top_, best_gap_ = gap;
    top_ = std::max(top_, extent.end & mask);
  }

  Offset offset() const { return best_ >= 0 ? best_ : top_; }

 private:
  Offset bytes_, top_ = 0, best_ = -1, best_gap_ = std::numeric_limits<Offset>::max();
};

// Extents of placed buffers, indexed by time: those that begin within a range, and those that cover a
// position (in a segment tree). All micro-batches place their buffers at the same addresses, so there are far
// fewer extents than buffers.
class PlacedIndex {
 public:
  explicit PlacedIndex(std::int32_t positions)
      : leaves_(std::max(positions, 1)),
        wide_(std::max(1, leaves_ / kWide)),
        covering_widely_(static_cast<std::size_t>(wide_)),
        covering_(2 * static_cast<std::size_t>(leaves_), kNone),
        starting_(static_cast<std::size_t>(leaves_), kNone) {}

  void add(const Extent& extent, const Item& item) {
    const auto [known, is_new] = numbers_.try_emplace(extent, static_cast<std::int32_t>(extents_.size()));
    if (is_new) {
      extents_.push_back(extent), met_by_.push_back(0);
      const auto at = std::ranges::upper_bound(sorted_, extent);
      numbers_sorted_.insert(numbers_sorted_.begin() + (at - sorted_.begin()), known->second);
      sorted_.insert(at, extent);
    }
    push(starting_[static_cast<std::size_t>(item.first)], known->second);
    for (std::int32_t l = item.first + leaves_, r = item.last + leaves_ + 1; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) cover(l++, known->second);
      if (r % 2 == 1) cover(--r, known->second);
    }
  }

  // The best offset between the extents that are live at the same time as the item.
  Offset best_fit(const Item& item) {
    met_.clear();
    ++query_;
    const auto meet = [&](std::int32_t number) {
      if (std::exchange(met_by_[static_cast<std::size_t>(number)], query_) != query_) met_.push_back(number);
    };
    const auto visit = [&](std::int32_t entry) {
      for (; entry != kNone; entry = entries_[static_cast<std::size_t>(entry)].next)
        meet(entries_[static_cast<std::size_t>(entry)].extent);
    };
    std::int32_t n = item.first + leaves_;
    for (; n >= wide_; n /= 2) visit(covering_[static_cast<std::size_t>(n)]);
    for (; n > 0; n /= 2)
      for (const std::int32_t extent : covering_widely_[static_cast<std::size_t>(n)]) meet(extent);
    for (std::int32_t t = item.first + 1; t <= item.last; ++t) visit(starting_[static_cast<std::size_t>(t)]);
    BestFit fit(item.bytes);
    constexpr std::size_t kFew = 8;  // sort the extents met if they are a smaller share of all than this
    if (met_.size() < extents_.size() / kFew) {
      std::ranges::sort(met_, {}, [&](std::int32_t n) { return extents_[static_cast<std::size_t>(n)]; });
      for (const std::int32_t n : met_) fit.pass(extents_[static_cast<std::size_t>(n)], true);
    } else {
      for (std::size_t i = 0; i < sorted_.size(); ++i)
        fit.pass(sorted_[i], met_by_[static_cast<std::size_t>(numbers_sorted_[i])] == query_);
    }
    return fit.offset();
  }

 private:
  static constexpr std::int32_t kNone = -1;

  struct Entry {
    std::int32_t extent, next;
  };

  void cover(std::int32_t node, std::int32_t extent) {
    if (node >= wide_)
      push(covering_[static_cast<std::size_t>(node)], extent);
    else
      covering_widely_[static_cast<std::size_t>(node)].push_back(extent);
  }

  void push(std::int32_t& head, std::int32_t extent) {
    entries_.push_back({extent, head});
    head = static_cast<std::int32_t>(entries_.size()) - 1;
  }

  static constexpr std::int32_t kWide = 32;  // positions

  std::int32_t leaves_;
  std::int32_t wide_;  // nodes below this number cover more than kWide positions
  // Extents, by wide node. Arrays, because many buffers cover these nodes.
  std::vector<std::vector<std::int32_t>> covering_widely_;
  std::vector<std::int32_t> covering_, starting_;  // by node and by position: first entry of a linked list
  std::vector<Entry> entries_;
  std::map<Extent, std::int32_t> numbers_;
  std::vector<Extent> extents_;       // by number
  std::vector<std::int32_t> met_by_;  // by number: the last query that met it
  std::vector<Extent> sorted_;
  std::vector<std::int32_t> numbers_sorted_;  // numbers of sorted_
  std::vector<std::int32_t> met_;             // numbers met by the current query
  std::int32_t query_ = 0;
};

// Places buffers in the given order, each in the best gap that the earlier ones leave. Ends early once the
// peak reaches `limit`.
Placement place_in_gaps(const Problem& p, const std::vector<std::int32_t>& order, Offset limit) {
  Placement result{.offsets = std::vector<Offset>(p.items.size()), .peak = 0};
  PlacedIndex placed(p.positions);
  for (const std::int32_t id : order) {
    check_time();
    const Item& item = p.items[static_cast<std::size_t>(id)];
    if (item.bytes == 0) continue;
    const Offset offset = placed.best_fit(item);
    result.offsets[static_cast<std::size_t>(id)] = offset;
    result.peak = std::max(result.peak, offset + item.bytes);
    if (result.peak >= limit) break;
    placed.add({offset, offset + item.bytes}, item);
  }
  return result;
}

// Stacks buffers in the given order, each above all earlier ones that it overlaps in time. Exact for nested
// lifetimes (activations of a forward and backward pass) placed long-lived first. Fast for any number of
// buffers.
Placement place_on_skyline(const Problem& p, const std::vector<std::int32_t>& order) {
  Placement result{.offsets = std::vector<Offset>(p.items.size()), .peak = 0};
  IntervalMap<Offset> skyline;  // by position
  for (const std::int32_t id : order) {
    check_time();
    const Item& item = p.items[static_cast<std::size_t>(id)];
    if (item.bytes == 0) continue;
    const auto below = skyline.pieces(item.first, item.last + 1);
    Offset offset = 0;
    for (auto piece = below.first; piece != below.second; ++piece) offset = std::max(offset, piece->second);
    skyline.unite(below, offset + item.bytes);
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
  // Grows the top. A free extent that touches the top is used first.
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
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::map<Offset, Offset> by_offset_{&nodes_};
  std::pmr::set<std::pair<Offset, Offset>> by_size_{&nodes_};
};

// Simulates a best-fit allocator over the program's run.
Placement place_in_time(const Problem& p) {
  Placement result{.offsets = std::vector<Offset>(p.items.size()), .peak = 0};
  const auto by_first = order_in_time(p), by_last = order_by_position(p, &Item::last);
  FreeList free;
  std::size_t ended = 0;
  for (const std::int32_t id : by_first) {
    check_time();
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

Assignment assign_offsets(std::span<const Lifetime> lifetimes, Bytes alignment, Bytes enough,
                          std::int64_t most_pairs) {
  HR_CHECK(alignment.value > 0 && (alignment.value & (alignment.value - 1)) == 0);
  const Problem p = compress(lifetimes, alignment.value);
  const Offset bound = std::max(max_live(p), enough.value);
  const auto by_length = order_by(p, [](const Item& i) { return std::pair(length(i), i.bytes); });
  Placement best = place_on_skyline(p, by_length);
  if (best.peak > bound) keep_better(best, place_in_time(p));
  if (best.peak > bound && overlapping_pairs(p) <= most_pairs) {
    const auto by_size = order_by(p, [](const Item& i) { return std::pair(i.bytes, length(i)); });
    keep_better(best, place_in_gaps(p, by_size, best.peak));
    if (best.peak > bound) keep_better(best, place_in_gaps(p, by_length, best.peak));
  }
  Assignment result{.offsets = {}, .peak = Bytes(best.peak)};
  for (const Offset o : best.offsets) result.offsets.emplace_back(o);
  return result;
}

Bytes max_live(std::span<const Lifetime> lifetimes, Bytes alignment) {
  return Bytes(max_live(compress(lifetimes, alignment.value)));
}

}  // namespace hyperrun

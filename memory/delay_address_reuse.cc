#include "memory/delay_address_reuse.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using Offset = std::int64_t;

// Buffers that live for at most so many positions are moved. Others, such as activations kept for the
// backward pass, begin and end rarely.
constexpr std::int32_t kShortLived = 64;
// With more extents of long-lived buffers nearby, a buffer is not moved: the search would take too long.
constexpr std::size_t kMostExtents = 2'000;

struct Extent {
  Offset begin, end;
  bool meets(const Extent& other) const { return begin < other.end && other.begin < end; }
};

// The number of buffers at each address. Adjacent ranges with equal numbers are merged.
class Cover {
 public:
  void add(const Extent& e, int more) {
    const auto first = cut(e.begin), last = cut(e.end);
    for (auto i = first; i != last; ++i) i->second += more;
    join(last), join(first);
  }

  bool meets(const Extent& e) const {
    auto i = heights_.upper_bound(e.begin);
    for (--i; i != heights_.end() && i->first < e.end; ++i)
      if (i->second > 0) return true;
    return false;
  }

  // Visits the covered extents in ascending order.
  template <class Visit>
  void each(Visit visit) const {
    for (auto i = heights_.begin(); i != heights_.end(); ++i)
      if (i->second > 0) visit(Extent{i->first, std::next(i)->first});
  }

  std::size_t size() const { return heights_.size(); }

 private:
  using Heights = std::map<Offset, int>;  // number of buffers in [key, next key)

  Heights::iterator cut(Offset at) {
    const auto next = heights_.lower_bound(at);
    if (next != heights_.end() && next->first == at) return next;
    return heights_.emplace_hint(next, at, std::prev(next)->second);
  }

  void join(Heights::iterator i) {
    if (i != heights_.begin() && std::prev(i)->second == i->second) heights_.erase(i);
  }

  Heights heights_{{std::numeric_limits<Offset>::min(), 0}};
};

class AddressReuse {
 public:
  AddressReuse(std::span<const Lifetime> lifetimes, Assignment& assignment, Offset alignment,
               std::int32_t distance)
      : all_(lifetimes), assignment_(assignment), alignment_(alignment), distance_(distance) {}

  void run() {
    sort();
    for (std::size_t id = 0; id < all_.size(); ++id) top_ = std::max(top_, end_of(id));
    for (const std::size_t id : short_) {
      const Lifetime& own = all_[id];
      while (gone_ < short_.size() && short_lived(gone_).first < own.first - distance_ - kShortLived) ++gone_;
      add_long_lived(own.first + distance_);
      remove_long_lived(own.first - distance_);
      if (const auto place = better_place(id)) assignment_.offsets[id] = Bytes(*place);
    }
    Offset top = 0;
    for (std::size_t id = 0; id < all_.size(); ++id)
      if (all_[id].bytes.value > 0) top = std::max(top, extent(id).end);
    assignment_.peak = Bytes(top);
  }

 private:
  const Lifetime& short_lived(std::size_t i) const { return all_[short_[i]]; }

  void sort() {
    for (std::size_t id = 0; id < all_.size(); ++id)
      if (all_[id].bytes.value > 0)
        (all_[id].last - all_[id].first <= kShortLived ? short_ : long_).push_back(id);
    const auto first = [&](std::size_t id) { return all_[id].first; };
    std::ranges::stable_sort(short_, {}, first);
    std::ranges::stable_sort(long_, {}, first);
    ends_ = long_;
    std::ranges::stable_sort(ends_, {}, [&](std::size_t id) { return all_[id].last; });
  }

  // Adds the long-lived buffers that begin by a position to the cover.
  void add_long_lived(std::int32_t position) {
    for (; in_ < long_.size() && all_[long_[in_]].first <= position; ++in_) cover_.add(extent(long_[in_]), 1);
  }
  void remove_long_lived(std::int32_t position) {
    for (; out_ < ends_.size() && all_[ends_[out_]].last < position; ++out_)
      cover_.add(extent(ends_[out_]), -1);
  }

  Extent extent(std::size_t id) const {
    const Offset begin = assignment_.offsets[id].value;
    return {begin, begin + (all_[id].bytes.value + alignment_ - 1) / alignment_ * alignment_};
  }

  Offset end_of(std::size_t id) const { return assignment_.offsets[id].value + all_[id].bytes.value; }

  // A better offset for the buffer; nullopt to leave it.
  std::optional<Offset> better_place(std::size_t id) {
    const Extent own = extent(id);
    const bool beside_long = cover_.meets(own);
    if (cover_.size() > kMostExtents) return std::nullopt;
    for (std::int32_t distance = distance_; distance > 0; distance /= 2) {
      if (!beside_long && !meets_others(id, own, distance)) return std::nullopt;
      taken_.clear();
      each_other(id, distance, [&](const Extent& e) { taken_.push_back(e); });
      std::ranges::sort(taken_, {}, &Extent::begin);
      if (const auto place = smallest_gap(all_[id].bytes.value)) return place;
    }
    return std::nullopt;
  }

  // Visits the buffers within `distance` positions that the cover lacks: short-lived ones and later
  // long-lived ones.
  template <class Visit>
  void each_other(std::size_t id, std::int32_t distance, Visit visit) const {
    const Lifetime& own = all_[id];
    for (std::size_t i = gone_; i < short_.size() && short_lived(i).first <= own.last + distance; ++i)
      if (short_[i] != id && short_lived(i).last >= own.first - distance) visit(extent(short_[i]));
    for (std::size_t i = in_; i < long_.size() && all_[long_[i]].first <= own.last + distance; ++i)
      visit(extent(long_[i]));
  }

  bool meets_others(std::size_t id, const Extent& own, std::int32_t distance) const {
    bool meets = false;
    each_other(id, distance, [&](const Extent& e) { meets = meets || e.meets(own); });
    return meets;
  }

  // The smallest sufficient gap between taken extents and the cover, below the peak.
  std::optional<Offset> smallest_gap(Offset bytes) const {
    std::optional<Offset> best;
    Offset top = 0, least = 0;
    const auto pass = [&](const Extent& e) {
      const Offset gap = e.begin - top;
      if (gap >= bytes && (!best || gap < least)) best = top, least = gap;
      top = std::max(top, e.end);
    };
    auto next = taken_.begin();
    cover_.each([&](const Extent& e) {
      for (; next != taken_.end() && next->begin < e.begin; ++next) pass(*next);
      pass(e);
    });
    std::for_each(next, taken_.end(), pass);
    pass({top_, top_});
    return best;
  }

  std::span<const Lifetime> all_;
  Assignment& assignment_;
  const Offset alignment_;
  const std::int32_t distance_;
  std::vector<std::size_t> short_, long_;  // short-lived and long-lived buffers by first position
  std::vector<std::size_t> ends_;          // long-lived buffers by last position
  std::size_t gone_ = 0;                   // index in short_: those before it are too early to matter
  std::size_t in_ = 0, out_ = 0;           // indices in long_ and ends_: entered and left the cover
  Cover cover_;                            // long-lived buffers near the current one
  std::vector<Extent> taken_;
  Offset top_ = 0;  // the peak
};

}  // namespace

void delay_address_reuse(std::span<const Lifetime> lifetimes, Assignment& assignment, Bytes alignment,
                         std::int32_t distance) {
  HR_CHECK(lifetimes.size() == assignment.offsets.size() && distance >= 0);
  AddressReuse(lifetimes, assignment, alignment.value, distance).run();
}

}  // namespace hyperrun

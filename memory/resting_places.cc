#include "memory/resting_places.h"

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

// Positions between the first and the last of a buffer that may be moved. The rest, kept from pass to pass,
// begin and end seldom.
constexpr std::int32_t kShort = 64;
// Among more that live long no place is looked for.
constexpr std::size_t kMostExtents = 2'000;

struct Extent {
  Offset begin, end;
  bool meets(const Extent& other) const { return begin < other.end && other.begin < end; }
};

// How many lie at each address. Neighbours that are alike are one.
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

  // In their order.
  template <class Visit>
  void each(Visit visit) const {
    for (auto i = heights_.begin(); i != heights_.end(); ++i)
      if (i->second > 0) visit(Extent{i->first, std::next(i)->first});
  }

  std::size_t size() const { return heights_.size(); }

 private:
  using Heights = std::map<Offset, int>;  // of [this, next)

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

class Resting {
 public:
  Resting(std::span<const Lifetime> lifetimes, Assignment& assignment, Offset alignment, std::int32_t rest)
      : all_(lifetimes), assignment_(assignment), alignment_(alignment), rest_(rest) {}

  void run() {
    sort();
    for (std::size_t id = 0; id < all_.size(); ++id) top_ = std::max(top_, end_of(id));
    for (const std::size_t id : short_) {
      const Lifetime& own = all_[id];
      while (gone_ < short_.size() && of_short(gone_).first < own.first - rest_ - kShort) ++gone_;
      let_in(own.first + rest_);
      let_out(own.first - rest_);
      if (const auto place = better_place(id)) assignment_.offsets[id] = Bytes(*place);
    }
    Offset top = 0;
    for (std::size_t id = 0; id < all_.size(); ++id)
      if (all_[id].bytes.value > 0) top = std::max(top, extent(id).end);
    assignment_.peak = Bytes(top);
  }

 private:
  const Lifetime& of_short(std::size_t i) const { return all_[short_[i]]; }

  void sort() {
    for (std::size_t id = 0; id < all_.size(); ++id)
      if (all_[id].bytes.value > 0) (all_[id].last - all_[id].first <= kShort ? short_ : long_).push_back(id);
    const auto first = [&](std::size_t id) { return all_[id].first; };
    std::ranges::stable_sort(short_, {}, first);
    std::ranges::stable_sort(long_, {}, first);
    ends_ = long_;
    std::ranges::stable_sort(ends_, {}, [&](std::size_t id) { return all_[id].last; });
  }

  // Of what lives long, that begins by then.
  void let_in(std::int32_t position) {
    for (; in_ < long_.size() && all_[long_[in_]].first <= position; ++in_) cover_.add(extent(long_[in_]), 1);
  }
  void let_out(std::int32_t position) {
    for (; out_ < ends_.size() && all_[ends_[out_]].last < position; ++out_)
      cover_.add(extent(ends_[out_]), -1);
  }

  Extent extent(std::size_t id) const {
    const Offset begin = assignment_.offsets[id].value;
    return {begin, begin + (all_[id].bytes.value + alignment_ - 1) / alignment_ * alignment_};
  }

  Offset end_of(std::size_t id) const { return assignment_.offsets[id].value + all_[id].bytes.value; }

  // Nothing where it may stay or nowhere is better.
  std::optional<Offset> better_place(std::size_t id) {
    const Extent own = extent(id);
    const bool beside_long = cover_.meets(own);
    if (cover_.size() > kMostExtents) return std::nullopt;
    for (std::int32_t rest = rest_; rest > 0; rest /= 2) {
      if (!beside_long && !meets_others(id, own, rest)) return std::nullopt;
      taken_.clear();
      each_other(id, rest, [&](const Extent& e) { taken_.push_back(e); });
      std::ranges::sort(taken_, {}, &Extent::begin);
      if (const auto place = smallest_gap(all_[id].bytes.value)) return place;
    }
    return std::nullopt;
  }

  // Within `rest` positions of it, of what lives shortly or is not in the cover yet.
  template <class Visit>
  void each_other(std::size_t id, std::int32_t rest, Visit visit) const {
    const Lifetime& own = all_[id];
    for (std::size_t i = gone_; i < short_.size() && of_short(i).first <= own.last + rest; ++i)
      if (short_[i] != id && of_short(i).last >= own.first - rest) visit(extent(short_[i]));
    for (std::size_t i = in_; i < long_.size() && all_[long_[i]].first <= own.last + rest; ++i)
      visit(extent(long_[i]));
  }

  bool meets_others(std::size_t id, const Extent& own, std::int32_t rest) const {
    bool meets = false;
    each_other(id, rest, [&](const Extent& e) { meets = meets || e.meets(own); });
    return meets;
  }

  // Between what is taken and the cover, not above the highest byte.
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
  const std::int32_t rest_;
  std::vector<std::size_t> short_, long_, ends_;  // the first two by their firsts, `ends_` long ones by last
  std::size_t gone_ = 0, in_ = 0, out_ = 0;
  Cover cover_;  // of long ones that live near the one that is looked at
  std::vector<Extent> taken_;
  Offset top_ = 0;  // where the highest ends
};

}  // namespace

void let_places_rest(std::span<const Lifetime> lifetimes, Assignment& assignment, Bytes alignment,
                     std::int32_t rest) {
  HR_CHECK(lifetimes.size() == assignment.offsets.size() && rest >= 0);
  Resting(lifetimes, assignment, alignment.value, rest).run();
}

}  // namespace hyperrun

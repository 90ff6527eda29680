// A function of int64 that is constant over intervals: what lies at each address, how high at each time.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory_resource>
#include <utility>

namespace hyperrun {

// T{} where nothing was said yet. A piece reaches to the next one's begin.
template <class T>
class IntervalMap {
 public:
  using Piece = typename std::pmr::map<std::int64_t, T>::iterator;  // {begin, value}

  // The pieces of [begin, end), cut where it begins and ends: first and past the last. begin < end.
  std::pair<Piece, Piece> pieces(std::int64_t begin, std::int64_t end) {
    const Piece first = cut(begin, pieces_.lower_bound(begin));
    Piece last = std::next(first);
    while (last != pieces_.end() && last->first < end) ++last;
    return {first, cut(end, last)};
  }

  // Makes one of them.
  void unite(const std::pair<Piece, Piece>& range, T value) {
    pieces_.erase(std::next(range.first), range.second);
    range.first->second = std::move(value);
  }

 private:
  // `next`: the first piece that does not begin below.
  Piece cut(std::int64_t at, Piece next) {
    if (next != pieces_.end() && next->first == at) return next;
    return pieces_.emplace_hint(next, at, next == pieces_.begin() ? T{} : std::prev(next)->second);
  }

  std::pmr::unsynchronized_pool_resource nodes_;  // which come and go all the time
  std::pmr::map<std::int64_t, T> pieces_{&nodes_};
};

}  // namespace hyperrun

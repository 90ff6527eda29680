// A piecewise constant function of int64: the last writer of each address, the height at each time.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory_resource>
#include <utility>

namespace hyperrun {

// The value is T{} where none was set. A piece ends where the next one begins.
template <class T>
class IntervalMap {
 public:
  using Piece = typename std::pmr::map<std::int64_t, T>::iterator;  // {begin, value}

  // The pieces of [begin, end), begin < end: the first one, and the one past the last. Pieces that reach over
  // either end are cut in two.
  std::pair<Piece, Piece> pieces(std::int64_t begin, std::int64_t end) {
    const Piece first = cut(begin, pieces_.lower_bound(begin));
    Piece last = std::next(first);
    while (last != pieces_.end() && last->first < end) ++last;
    return {first, cut(end, last)};
  }

  // Merges the pieces of `range` into one.
  void unite(const std::pair<Piece, Piece>& range, T value) {
    pieces_.erase(std::next(range.first), range.second);
    range.first->second = std::move(value);
  }

 private:
  // The piece that begins at `at`, cut from the one before if needed. `next`: the first piece that begins at
  // or above `at`.
  Piece cut(std::int64_t at, Piece next) {
    if (next != pieces_.end() && next->first == at) return next;
    return pieces_.emplace_hint(next, at, next == pieces_.begin() ? T{} : std::prev(next)->second);
  }

  std::pmr::unsynchronized_pool_resource nodes_;  // a pool, because nodes come and go all the time
  std::pmr::map<std::int64_t, T> pieces_{&nodes_};
};

}  // namespace hyperrun

// Tiles of a buffer's rows have no row in common: who touches one waits for nobody who touches another. What
// is kept of a buffer's earlier touches is therefore kept apart for each tile, beside what touched all rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// Two operands of one buffer that are different tiles of its rows.
constexpr bool apart(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.tile.count > 1 && a.tile.count == b.tile.count &&
         a.tile.blocks == b.tile.blocks && a.tile.rows == b.tile.rows && a.tile.index != b.tile.index;
}

// What is known (a T) of some bytes: of touches of all of them, and of touches of single tiles since these
// were last written as a whole.
template <class T>
class SharedByTiles {
 public:
  // f(T&) for all that a touch by this operand meets.
  template <class F>
  void each_met(const Operand& operand, F f) {
    f(whole_);
    for (OfTile& t : tiles_)
      if (!apart(operand, t.operand)) f(t.known);
  }

  // What is known of touches by operands like this one. `now`: does not decrease from touch to touch.
  T& of(const Operand& operand, std::int64_t now = 0) {
    if (operand.tile.whole()) return touched_ = now, whole_;
    OfTile& tile = entry(operand);
    return tile.touched = now, tile.known;
  }

  // The same of a tile that is written, by one who comes after all that it meets. Once all tiles have been,
  // what was touched before the first of these writes is forgotten: who comes after one of them comes after
  // that, too. (Else places that ever new buffers take, tile by tile, would remember all of them.)
  T& write(const Operand& operand, std::int64_t now) {
    entry(operand).written = entry(operand).touched = now;
    forget_before_writes(operand, now);
    return entry(operand).known;
  }

 private:
  struct OfTile {
    Operand operand;
    T known;
    std::int64_t touched = 0, written = -1;
  };

  void forget_before_writes(const Operand& operand, std::int64_t now) {
    std::int64_t first = now;
    std::int32_t tiles = 0;
    for (const OfTile& t : tiles_)
      if (of_one_cut(t.operand, operand) && t.written >= 0) first = std::min(first, t.written), ++tiles;
    if (tiles < operand.tile.count) return;
    std::erase_if(tiles_,
                  [&](const OfTile& t) { return !of_one_cut(t.operand, operand) && t.touched < first; });
    if (touched_ < first) whole_ = T{};
  }

  static bool of_one_cut(const Operand& a, const Operand& b) {
    RowTile of_a = a.tile;
    of_a.index = b.tile.index;
    return a.buffer == b.buffer && of_a == b.tile;
  }

  OfTile& entry(const Operand& operand) {
    const auto found = std::ranges::find_if(tiles_, [&](const OfTile& t) {
      return t.operand.buffer == operand.buffer && t.operand.tile == operand.tile;
    });
    return found != tiles_.end() ? *found : tiles_.emplace_back(OfTile{operand, {}});
  }

  T whole_{};
  std::int64_t touched_ = 0;  // whole_
  std::vector<OfTile> tiles_;
};

}  // namespace hyperrun

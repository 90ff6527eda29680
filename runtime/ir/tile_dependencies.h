// Records earlier accesses to some bytes, separately for each tile of a buffer's rows. Two tiles have no row
// in common, so an access to one need not wait for an access to another; an access to all rows waits for
// both.
//
//   TileDependencies<LastWriter> bytes;
//   bytes.each_conflicting(operand, [&](LastWriter& w) { wait_for(w); });
//   bytes.write(operand, now) = this_instruction;
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// True for two operands of one buffer that are different tiles of its rows.
constexpr bool different_tiles(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.tile.count > 1 && a.tile.count == b.tile.count &&
         a.tile.blocks == b.tile.blocks && a.tile.rows == b.tile.rows && a.tile.index != b.tile.index;
}

// One record, a T, for accesses to all of the bytes; and one for accesses to each single tile since the bytes
// were last written as a whole.
template <class T>
class TileDependencies {
 public:
  // Calls f(T&) for each record of accesses that may have rows in common with `operand`.
  template <class F>
  void each_conflicting(const Operand& operand, F f) {
    f(whole_);
    for (OfTile& t : tiles_)
      if (!different_tiles(operand, t.operand)) f(t.known);
  }

  // The record for accesses by operands with the same tile. `now` must not decrease from access to access.
  T& of(const Operand& operand, std::int64_t now = 0) {
    if (operand.tile.whole()) return touched_ = now, whole_;
    OfTile& tile = entry(operand);
    return tile.touched = now, tile.known;
  }

  // The record of a tile that is written by an instruction that comes after all conflicting accesses. Once
  // all tiles are written, records of accesses before the first of these writes are dropped: whoever comes
  // after one of the writes comes after those too. Without this, an address range that one buffer after
  // another takes, tile by tile, would keep records of all of them.
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
  std::int64_t touched_ = 0;  // last access recorded in whole_
  std::vector<OfTile> tiles_;
};

}  // namespace hyperrun

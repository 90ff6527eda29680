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

  // What is known of touches by operands like this one.
  T& of(const Operand& operand) {
    if (operand.tile.whole()) return whole_;
    const auto same = [&](const OfTile& t) {
      return t.operand.buffer == operand.buffer && t.operand.tile == operand.tile;
    };
    const auto found = std::ranges::find_if(tiles_, same);
    return found != tiles_.end() ? found->known : tiles_.emplace_back(OfTile{operand, {}}).known;
  }

 private:
  struct OfTile {
    Operand operand;
    T known;
  };
  T whole_{};
  std::vector<OfTile> tiles_;
};

}  // namespace hyperrun

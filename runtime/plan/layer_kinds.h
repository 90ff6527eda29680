// Which layers of an outline are alike (pieces.h): of each kind there are some in a row, and one stands for
// them.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/plan/pieces.h"

namespace hyperrun {

class LayerKinds {
 public:
  // Of each layer: its kind, none less than of the one before.
  explicit LayerKinds(std::vector<int> of_layer);

  int count() const { return of_layer_.back() + 1; }
  int layers() const { return static_cast<int>(of_layer_.size()); }
  int second_of(int kind) const;
  int last_of(int kind) const;
  // The second one stands for its kind; what lies before the layers or behind them for itself.
  bool stands(int layer) const;
  // `layer`: -1 is before the layers, as many as there are or more behind them. All kinds have pieces.
  LayerPieces& pieces_of(Pieces& pieces, int layer) const;

 private:
  std::vector<int> of_layer_;
};

}  // namespace hyperrun

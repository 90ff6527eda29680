// Models how a library cuts a matrix product into tiles for the cores. It has several tile shapes: rows and
// columns of the largest are halved repeatedly, and may be exchanged. If there are few tiles, it also splits
// the depth and sums the parts through memory. The fastest cut is chosen.
#pragma once

#include "runtime/ir/machine.h"

namespace hyperrun {

// A product of [m, k] and [k, n].
struct Product {
  double m = 0, n = 0, k = 0;
  double blocks = 1;  // separate blocks of rows; no tile spans two
};

struct Tiling {
  double rows = 0, columns = 0;  // of a tile; 0: the machine has no figures about tiles
  double parts = 1;              // parts of the depth, each a tile of its own
  double share = 1;              // of the peak, after losses by rounds, edges and the tiles' shape
  double depth = 1;              // efficiency for the depth of a part
  double partial_bytes = 0;      // traffic of partial sums, written and read
};

// The fastest cut on a device with `rate` operations a second. `memory`: seconds that the operands and the
// result keep the memory busy meanwhile.
Tiling tiling(const Product& product, const Machine& machine, double rate, double memory = 0);

}  // namespace hyperrun

// How a product is cut into tiles. A library has several shapes of them: rows and columns of the largest are
// halved so often, and may change places. Where there are few tiles it splits their depth as well, and adds
// up the parts through memory. Of all these it takes what is fastest.
#pragma once

#include "runtime/ir/machine.h"

namespace hyperrun {

// Of a product of [m, k] and [k, n].
struct Product {
  double m = 0, n = 0, k = 0;
  double blocks = 1;  // of rows that lie apart: no tile has rows of two
};

struct Tiling {
  double rows = 0, columns = 0;  // of a tile; 0: the machine knows no tiles
  double parts = 1;              // into which its depth is split, each a tile of its own
  double share = 1;              // of the peak that rounds, edges and the tiles' shape leave
  double depth = 1;              // efficiency by the depth of a part
  double partial_bytes = 0;      // of parts that are written, and read to be added up
};

// The fastest for a device of `rate` operations a second, whose memory is busy with the operands and the
// result for so many seconds beside it.
Tiling tiling(const Product& product, const Machine& machine, double rate, double memory = 0);

}  // namespace hyperrun

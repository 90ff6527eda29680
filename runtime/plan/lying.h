// Where the axes of a strategy lie on the machine, as far as a bound knows.
#pragma once

#include <vector>

#include "runtime/plan/pieces.h"

namespace hyperrun {

// What gradients and weights take at least along the axes that split tokens, ns a byte: to be added up once,
// and in each backward pass, where that is not once a step alone; to be gathered once where ZeRO splits them.
struct Exchange {
  double reduce = 0, reduce_in_pass = 0, gather = 0;
};

// Of what lies over the expert axis, and of the rest, as LayerPieces tells it apart. Of `narrow` nothing may
// be split.
struct DataTraffic {
  Exchange usual, wide, spread;
  double reduce_narrow = 0;
  // Of weights that have the model's width, and do not lie over the expert axis: in each backward pass each
  // gradient is scattered over all of these axes.
  bool scatters = false;
};

// What is known of how axes lie: some stages have other pieces than the rest, as their groups are of two
// units of the machine.
struct Lying {
  std::vector<bool> apart;  // by stage; empty: none
  LayersPieces pieces_apart;
  DataTraffic data, data_apart;
};

}  // namespace hyperrun

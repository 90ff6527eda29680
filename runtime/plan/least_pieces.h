// What layers take at least of which any number may recompute more.
#pragma once

#include <cstdint>

#include "runtime/plan/closed_form.h"
#include "runtime/plan/pieces.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// ns, 0 or less: by how much a pass is shorter at its end than where another layer follows.
double shorter_at_the_end(const Piece& pass);
double shorter_at_the_end(const Piece& one, const Piece& other);  // of whichever more
// ns, 0 or less: by how much what a stage waits for is there before the pass ends.
double handed_early(const Piece& pass);
double shorter_at_the_end(const SplitPass& pass);
double shorter_at_the_end(const SplitPass& one, const SplitPass& other);

// A layer that may recompute more or not: nothing of its bounds is longer than of either. What is done
// meanwhile of a pass, or put off, leaves of it no more than of either.
LayerPieces least_of(const LayerPieces& one, const LayerPieces& other);

// ns, 0 or less.
struct Shorter {
  double forward = 0, backward = 0, split = 0;
};
// Where the layers that recompute more end and others begin, the passes before may be shorter, as at an end:
// what is recomputed need not wait for what comes from there. Forward passes that are alike stay so.
Shorter between(const LayersPieces& layers);

// Less than this share of its bound, from these pieces, no strategy has with more layers that recompute more,
// however many; 1 where `deeper` is null. Of bounds that know nothing of how axes lie. `layers`: of the
// model.
double least_share(const LayersPieces& pieces, const Strategy& strategy, std::int32_t layers);

}  // namespace hyperrun

#include "runtime/plan/least_pieces.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hyperrun {

double shorter_at_the_end(const Piece& p) { return std::min(0.0, p.ending - p.bound); }
double handed_early(const Piece& p) { return std::min(0.0, p.handing - p.ending); }
double shorter_at_the_end(const SplitPass& p) { return std::min(0.0, p.ending - p.bound); }

LayerPieces least_of(const LayerPieces& a, const LayerPieces& b) {
  LayerPieces least = a;
  const auto shorter = [](Piece& p, const Piece& other) {
    for (std::size_t s = 0; s < kStreams; ++s)
      p.least_busy[s] = std::min(p.least_busy[s], other.least_busy[s]);
    p.bound = std::min(p.bound, other.bound);
  };
  shorter(least.forward, b.forward), shorter(least.backward, b.backward);
  const double more_a = a.backward.bound - least.backward.bound,
               more_b = b.backward.bound - least.backward.bound;
  least.backward.ahead_bound = std::max(a.backward.ahead_bound - more_a, b.backward.ahead_bound - more_b);
  for (std::size_t s = 0; s < kStreams; ++s) least.saved[s] = std::max(a.saved[s], b.saved[s]);
  least.at_once = std::min(a.at_once, b.at_once);
  least.split.bound = std::min(a.split.bound, b.split.bound);
  least.split.weights = std::min(a.split.weights, b.split.weights);
  return least;
}

double shorter_at_the_end(const Piece& a, const Piece& b) {
  return std::min(shorter_at_the_end(a), shorter_at_the_end(b));
}

double shorter_at_the_end(const SplitPass& a, const SplitPass& b) {
  return std::min(shorter_at_the_end(a), shorter_at_the_end(b));
}

Shorter between(const LayersPieces& layers) {
  Shorter least;
  for (std::size_t k = 0; k < layers.pieces->kinds.size(); ++k) {
    const LayerPieces &usual = layers.pieces->kinds[k], &more = layers.deeper->kinds[k];
    least.backward = std::min(least.backward, shorter_at_the_end(usual.backward, more.backward));
    least.split = std::min(least.split, shorter_at_the_end(usual.split, more.split));
    if (usual.forward.bound != more.forward.bound || usual.forward.ending != more.forward.ending)
      least.forward = std::min(least.forward, shorter_at_the_end(usual.forward, more.forward));
  }
  return least;
}

namespace {

// What a bound is made of, without layers that recompute more and at least with any number of them.
class Shares {
 public:
  explicit Shares(const LayersPieces& pieces)
      : all_(pieces.pieces->kinds), all_deeper_(pieces.deeper->kinds), between_(between(pieces)) {}

  // Of so many layers in a row, of which those that recompute more begin in so many places.
  void look_at(double layers, double places) {
    for (std::size_t k = 0; k < all_.size(); ++k) look_at(all_[k], all_deeper_[k], layers, places);
  }

  double least() const { return least_; }

 private:
  void keep(double usual, double least) {
    if (usual != least) least_ = std::min(least_, usual > 0 ? std::max(0.0, least / usual) : 0);
  }

  void look_at(const LayerPieces& usual, const LayerPieces& deeper, double layers, double places) {
    const LayerPieces least = least_of(usual, deeper);
    const double saved = std::accumulate(least.saved.begin(), least.saved.end(), 0.0);
    keep(usual.forward.bound, least.forward.bound);
    keep(usual.backward.bound - saved, least.backward.bound - saved);
    for (std::size_t s = 0; s < kStreams; ++s)
      keep(usual.forward.least_busy[s] + usual.backward.least_busy[s] - least.saved[s],
           least.forward.least_busy[s] + least.backward.least_busy[s] - least.saved[s]);
    for (std::size_t last = 0; last < all_.size(); ++last) {
      const LayerPieces &end = all_[last], &deeper_end = all_deeper_[last];
      const double forward = layers * usual.forward.bound + shorter_at_the_end(end.forward);
      const double backward = layers * (usual.backward.bound - saved) + shorter_at_the_end(end.backward);
      const double least_forward = layers * least.forward.bound + places * between_.forward +
                                   shorter_at_the_end(end.forward, deeper_end.forward);
      const double least_backward = layers * (least.backward.bound - saved) + places * between_.backward +
                                    shorter_at_the_end(end.backward, deeper_end.backward);
      keep(forward, least_forward), keep(backward, least_backward);
      const double early = handed_early(end.backward);
      keep(backward - end.backward.ahead_bound + early,
           least_backward - least_of(end, deeper_end).backward.ahead_bound +
               std::min(early, handed_early(deeper_end.backward)));
      look_at_split(usual.split, least.split, end.split, deeper_end.split, layers, places, layers * saved,
                    forward, least_forward);
    }
  }

  // Behind forward passes, as no bound has it alone. With all products, or up to the last micro-batch's: what
  // is left of them where that is more than the first one has less, which it may be by any part.
  void look_at_split(const SplitPass& usual, const SplitPass& least, const SplitPass& end,
                     const SplitPass& deeper_end, double layers, double places, double saved, double forward,
                     double least_forward) {
    const double with = forward + layers * usual.bound + shorter_at_the_end(end);
    const double rest = layers * least.bound + places * between_.split + shorter_at_the_end(end, deeper_end);
    const double least_with = least_forward + rest, part = std::min(saved, std::max(0.0, rest));
    keep(with - part, least_with - part);
    keep(with + layers * usual.weights - saved, least_with + layers * least.weights - saved);
  }

  const std::vector<LayerPieces>&all_, &all_deeper_;
  const Shorter between_;
  double least_ = 1;
};

}  // namespace

// All that a bound is made of are sums, largest ones and multiples of what stages and devices take forward,
// backward, backward behind what is computed ahead, and on each stream, and of times that are the same: it
// loses no greater a share than that of them which loses most. The fewer layers a stage has the more it
// loses, but one layer has no other beside it; one of layers of two kinds loses no more than of either,
// whatever the kind of its last; a single micro-batch, which has less to do, loses more than several.
double least_share(const LayersPieces& pieces, const Strategy& s, std::int32_t layers) {
  if (pieces.deeper == nullptr) return 1;
  Shares shares(pieces);
  const std::int32_t stages = s[PlanAxis::kPipeline] * s.chunks, least = std::max(1, least_layers(s, layers));
  shares.look_at(least, least == 1 ? 0 : 1);
  if (least == 1 && stages < layers) shares.look_at(2, 1);
  if (s.chunks > 1) shares.look_at(least, 1.0 / s.chunks);
  return shares.least();
}

}  // namespace hyperrun

#include "runtime/plan/lower_bound_profile.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hyperrun {

double end_saving(const PassProfile& p) { return std::min(0.0, p.end_bound - p.bound); }
double handoff_saving(const PassProfile& p) { return std::min(0.0, p.handoff_bound - p.end_bound); }
double end_saving(const SplitPass& p) { return std::min(0.0, p.end_bound - p.bound); }

LayerProfile elementwise_min(const LayerProfile& a, const LayerProfile& b) {
  LayerProfile least = a;
  const auto shorter = [](PassProfile& p, const PassProfile& other) {
    for (std::size_t s = 0; s < kStreams; ++s)
      p.busy_bound[s] = std::min(p.busy_bound[s], other.busy_bound[s]);
    p.bound = std::min(p.bound, other.bound);
  };
  shorter(least.forward, b.forward), shorter(least.backward, b.backward);
  const double more_a = a.backward.bound - least.backward.bound,
               more_b = b.backward.bound - least.backward.bound;
  least.backward.prologue_bound =
      std::max(a.backward.prologue_bound - more_a, b.backward.prologue_bound - more_b);
  for (std::size_t s = 0; s < kStreams; ++s) least.saved[s] = std::max(a.saved[s], b.saved[s]);
  least.largest_instr = std::min(a.largest_instr, b.largest_instr);
  least.split.bound = std::min(a.split.bound, b.split.bound);
  least.split.weights = std::min(a.split.weights, b.split.weights);
  return least;
}

double end_saving(const PassProfile& a, const PassProfile& b) {
  return std::min(end_saving(a), end_saving(b));
}

double end_saving(const SplitPass& a, const SplitPass& b) { return std::min(end_saving(a), end_saving(b)); }

EndSavings boundary_savings(const StepProfiles& layers) {
  EndSavings least;
  for (std::size_t k = 0; k < layers.base->kinds.size(); ++k) {
    const LayerProfile &usual = layers.base->kinds[k], &more = layers.extra->kinds[k];
    least.backward = std::min(least.backward, end_saving(usual.backward, more.backward));
    least.split = std::min(least.split, end_saving(usual.split, more.split));
    if (usual.forward.bound != more.forward.bound || usual.forward.end_bound != more.forward.end_bound)
      least.forward = std::min(least.forward, end_saving(usual.forward, more.forward));
  }
  return least;
}

namespace {

// The least ratio over all terms of a bound, with extra recomputing layers to without.
class Shares {
 public:
  explicit Shares(const StepProfiles& profiles)
      : all_(profiles.base->kinds),
        all_extra_(profiles.extra->kinds),
        boundary_savings_(boundary_savings(profiles)) {}

  // Terms of a stage of `layers` layers, in which extra recomputing layers begin `places` times.
  void look_at(double layers, double places) {
    for (std::size_t k = 0; k < all_.size(); ++k) look_at(all_[k], all_extra_[k], layers, places);
  }

  double least() const { return least_; }

 private:
  void keep(double usual, double least) {
    if (usual != least) least_ = std::min(least_, usual > 0 ? std::max(0.0, least / usual) : 0);
  }

  void look_at(const LayerProfile& usual, const LayerProfile& extra, double layers, double places) {
    const LayerProfile least = elementwise_min(usual, extra);
    const double saved = std::accumulate(least.saved.begin(), least.saved.end(), 0.0);
    keep(usual.forward.bound, least.forward.bound);
    keep(usual.backward.bound - saved, least.backward.bound - saved);
    for (std::size_t s = 0; s < kStreams; ++s)
      keep(usual.forward.busy_bound[s] + usual.backward.busy_bound[s] - least.saved[s],
           least.forward.busy_bound[s] + least.backward.busy_bound[s] - least.saved[s]);
    for (std::size_t last = 0; last < all_.size(); ++last) {
      const LayerProfile &end = all_[last], &extra_end = all_extra_[last];
      const double forward = layers * usual.forward.bound + end_saving(end.forward);
      const double backward = layers * (usual.backward.bound - saved) + end_saving(end.backward);
      const double least_forward = layers * least.forward.bound + places * boundary_savings_.forward +
                                   end_saving(end.forward, extra_end.forward);
      const double least_backward = layers * (least.backward.bound - saved) +
                                    places * boundary_savings_.backward +
                                    end_saving(end.backward, extra_end.backward);
      keep(forward, least_forward), keep(backward, least_backward);
      const double early = handoff_saving(end.backward);
      keep(backward - end.backward.prologue_bound + early,
           least_backward - elementwise_min(end, extra_end).backward.prologue_bound +
               std::min(early, handoff_saving(extra_end.backward)));
      look_at_split(usual.split, least.split, end.split, extra_end.split, layers, places, layers * saved,
                    forward, least_forward);
    }
  }

  // Terms of zero bubble, which always come after the forward passes. With all weight gradients, or up to the
  // last micro-batch: the first micro-batch saves at most `saved`.
  void look_at_split(const SplitPass& usual, const SplitPass& least, const SplitPass& end,
                     const SplitPass& extra_end, double layers, double places, double saved, double forward,
                     double least_forward) {
    const double with = forward + layers * usual.bound + end_saving(end);
    const double rest = layers * least.bound + places * boundary_savings_.split + end_saving(end, extra_end);
    const double least_with = least_forward + rest, part = std::min(saved, std::max(0.0, rest));
    keep(with - part, least_with - part);
    keep(with + layers * usual.weights - saved, least_with + layers * least.weights - saved);
  }

  const std::vector<LayerProfile>&all_, &all_extra_;
  const EndSavings boundary_savings_;
  double least_ = 1;
};

}  // namespace

// A bound is built by sums, maxima and multiples from the times of stages and devices, forward, backward,
// behind the prologue and on each stream, and from constants. Its ratio is therefore no less than the least
// ratio of these terms. Stages with fewer layers lose more, but a single layer has no neighbour with other
// recomputation. A stage of two layer kinds loses no more than one of either, whatever its last layer. One
// micro-batch loses more than several, as it does less work.
double extra_recompute_share(const StepProfiles& profiles, const Strategy& s, std::int32_t layers) {
  if (profiles.extra == nullptr) return 1;
  Shares shares(profiles);
  const std::int32_t stages = s[PlanAxis::kPipeline] * s.chunks, least = std::max(1, least_layers(s, layers));
  shares.look_at(least, least == 1 ? 0 : 1);
  if (least == 1 && stages < layers) shares.look_at(2, 1);
  if (s.chunks > 1) shares.look_at(least, 1.0 / s.chunks);
  return shares.least();
}

}  // namespace hyperrun

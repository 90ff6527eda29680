#include "runtime/plan/balance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hyperrun {
namespace {

double time_of(const LayerProfile& layer) { return layer.forward.time + layer.backward.time; }

class StageTimes {
 public:
  StageTimes(const Strategy& s, const ModelSpec& model, const StepProfile& profile)
      : s_(s),
        layers_(model.layers),
        devices_(s[PlanAxis::kPipeline]),
        dense_(profile.kinds.size() > 1 ? model.experts.dense_layers : 0),
        profile_(profile) {}

  // Time of a micro-batch on the slowest device, ns; infinity if a stage has no layer. Devices in the middle
  // differ by at most one layer unless layers are of two kinds.
  double longest() const {
    if (layers_of_stage(s_, layers_, 0) < 1 || layers_of_stage(s_, layers_, devices_ * s_.chunks - 1) < 1)
      return std::numeric_limits<double>::infinity();
    double longest = std::max(time_on(0), time_on(devices_ - 1));
    const std::int32_t differ = dense_ > 0 ? devices_ - 1 : std::min(2, devices_ - 1);
    for (std::int32_t d = 1; d < differ; ++d) longest = std::max(longest, time_on(d));
    return longest;
  }

 private:
  double time_on(std::int32_t device) const {
    std::int32_t dense = 0;
    for (std::int32_t v = device; dense_ > 0 && v < devices_ * s_.chunks; v += devices_)
      dense += dense_in(v, layers_of_stage(s_, layers_, v));
    const std::int32_t others = layers_of_device(s_, layers_, device) - dense;
    double time = dense * time_of(profile_.kinds.front()) + others * time_of(profile_.kinds.back());
    if (device == 0) time += time_of(profile_.first);
    if (device == devices_ - 1) time += time_of(profile_.last);
    return time;
  }

  std::int32_t dense_in(std::int32_t stage, std::int32_t layers) const {
    if (dense_ == 0) return 0;
    std::int32_t before = 0;
    for (std::int32_t v = 0; v < stage && before < dense_; ++v) before += layers_of_stage(s_, layers_, v);
    return std::clamp(dense_ - before, 0, layers);
  }

  const Strategy& s_;
  std::int32_t layers_, devices_, dense_;
  const StepProfile& profile_;
};

}  // namespace

std::optional<Strategy> balanced(const Strategy& strategy, const ModelSpec& model,
                                 const StepProfile& profile) {
  const std::int32_t devices = strategy[PlanAxis::kPipeline];
  if (devices == 1) return std::nullopt;
  const double layer = time_of(profile.kinds.back());
  const std::int32_t dense = profile.kinds.size() > 1 ? model.experts.dense_layers : 0;
  // Work of the embedding, less what dense layers at the front take less than other layers.
  const std::int32_t at_first = std::min(dense, model.layers / (devices * strategy.chunks));
  const double before = time_of(profile.first) - at_first * (layer - time_of(profile.kinds.front()));
  const double first_stage_shortfall = before / layer, last_stage_shortfall = time_of(profile.last) / layer;
  std::optional<Strategy> best;
  double shortest = StageTimes(strategy, model, profile).longest();
  const std::int32_t most = (model.layers + devices - 1) / devices;
  if (shortest <= most * std::min(layer, time_of(profile.kinds.front())))
    return best;  // some device has `most` layers in any case
  for (const double l : {std::floor(first_stage_shortfall), std::ceil(first_stage_shortfall)})
    for (const double t : {std::floor(last_stage_shortfall), std::ceil(last_stage_shortfall)}) {
      Strategy s = strategy;
      s.first_stage_shortfall = static_cast<std::int32_t>(l),
      s.last_stage_shortfall = static_cast<std::int32_t>(t);
      const double time = StageTimes(s, model, profile).longest();
      if (time < shortest) shortest = time, best = s;
    }
  return best;
}

}  // namespace hyperrun

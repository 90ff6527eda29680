#include "runtime/plan/zero_sharding.h"

namespace hyperrun {

// Tensor axes may split either width.
bool splits_at_once(const Strategy& s, const ModelSpec& model, Widths widths) {
  const std::int64_t parts = std::int64_t{s.zero_devices()} * s[PlanAxis::kTensorY];
  if (model.hidden % parts == 0) return true;
  if (widths == Widths::kOne) return false;
  const std::int64_t of_any = parts * s[PlanAxis::kTensor];
  const ExpertsSpec& experts = model.experts;
  const bool has_dense = experts.count == 0 || experts.dense_layers > 0;
  return (!has_dense || model.ffn % of_any == 0) && (experts.count == 0 || experts.ffn % of_any == 0);
}

bool splits_along(const Strategy& s, const ModelSpec& model, PlanAxis axis) {
  std::int64_t parts = s[PlanAxis::kTensorY];
  for (const PlanAxis a : kTokenAxes) {
    parts *= s[a];
    if (a == axis) break;
  }
  return model.hidden % parts == 0;
}

}  // namespace hyperrun

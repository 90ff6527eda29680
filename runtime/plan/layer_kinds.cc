#include "runtime/plan/layer_kinds.h"

#include <algorithm>
#include <utility>

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

LayerKinds::LayerKinds(std::vector<int> of_layer) : of_layer_(std::move(of_layer)) {}

int LayerKinds::second_of(int kind) const {
  return static_cast<int>(std::ranges::find(of_layer_, kind) - of_layer_.begin()) + 1;
}

int LayerKinds::last_of(int kind) const {
  int last = second_of(kind);
  while (last + 1 < layers() && of_layer_[at(last + 1)] == kind) ++last;
  return last;
}

bool LayerKinds::is_representative(int layer) const {
  return layer < 0 || layer >= layers() || layer == second_of(of_layer_[at(layer)]);
}

LayerProfile& LayerKinds::profile_of(StepProfile& profile, int layer) const {
  if (layer < 0) return profile.first;
  if (layer >= layers()) return profile.last;
  return profile.kinds[at(of_layer_[at(layer)])];
}

}  // namespace hyperrun

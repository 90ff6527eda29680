// Kinds of layers in a model of few layers (layer_profile.h): dense layers, then layers with experts. Layers
// of a kind are neighbours, and one of them represents the kind.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/plan/layer_profile.h"

namespace hyperrun {

class LayerKinds {
 public:
  // `of_layer`: the kind of each layer, in ascending order.
  explicit LayerKinds(std::vector<int> of_layer);

  int count() const { return of_layer_.back() + 1; }
  int layers() const { return static_cast<int>(of_layer_.size()); }
  int second_of(int kind) const;
  int last_of(int kind) const;
  // True for the second layer of each kind, which represents it, and for the embedding and the head.
  bool is_representative(int layer) const;
  // Profile of a layer's kind; `layer` -1 is the embedding, a number beyond the layers the head. `profile`
  // has all kinds.
  LayerProfile& profile_of(StepProfile& profile, int layer) const;

 private:
  std::vector<int> of_layer_;
};

}  // namespace hyperrun

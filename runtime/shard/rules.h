// Declared layouts. Presets and the user's rules name tensors by pattern and say which mesh axes split
// which of their dimensions. Propagation finds the layouts of all other tensors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// The rules of a preset (runtime/ir/presets.h) on this mesh. A dimension "*" is the first one that the axes
// divide. If the mesh has none of the axes of a preset that needs any one of them, the rules are returned
// anyway, to be refused like other rules.
std::vector<ShardRule> expand_preset(std::string_view preset, const Mesh& mesh);

// Matches a name with a pattern in which '*' stands for any characters.
bool matches(std::string_view pattern, std::string_view name);

struct Declaration {
  // The layout in which the tensor is stored; set if a rule names it or it is state.
  std::optional<Layout> layout;
  // The layout in which forward and backward pass use a weight, which is gathered first, and compute a
  // gradient, which is scattered afterwards. Equal to `layout` for other tensors.
  std::optional<Layout> used;
  // For messages: the rule that placed each axis, and the last rule that named the tensor.
  std::map<AxisId, std::string> axis_origins;
  std::string origin;
};

// How strictly rules are applied.
enum class Rules : std::uint8_t {
  kAllMustApply,    // each rule must name a tensor
  kThoseThatName,   // a part of a model lacks some tensors, so a rule may name none
  kThoseThatApply,  // generation has smaller dimensions too: rules that do not divide them are ignored
};

// The declarations by tensor of `graph`.
//   - State that no rule names is replicated.
//   - Later rules of the user override earlier ones dimension by dimension; a rule with a whole layout
//     overrides all dimensions.
//   - Updated state is declared like the state that it updates.
//   - A gradient and the optimizer's state are declared like their weight is used, unless rules say how they
//     are stored.
//   - If a weight has a copy to compute with (TensorClass::kCopy), the copy is declared like the weight, and
//     the weight like its moments.
//
// Throws kBadLayout, naming the rule and the legal sizes, if a dimension does not divide, an axis is unknown
// or used twice, a whole layout has the wrong number of entries, or a rule of the user matches nothing.
std::vector<Declaration> declare_layouts(const Graph& graph, const Mesh& mesh, const ParallelSpec& parallel,
                                         Rules strictness = Rules::kAllMustApply);

// Lengthens the dimensions that may be padded (Dim::pads), each by as little as lets the axes of all declared
// layouts divide it.
void pad_dims(Graph& graph, const Mesh& mesh, const std::vector<Declaration>& declared);

}  // namespace hyperrun

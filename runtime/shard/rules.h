// Declared layouts. Presets and the user's rules name tensors by pattern and say which mesh axes split
// which of their dimensions; everything that no rule names is left to propagation.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// The rules that a preset (runtime/ir/presets.h) stands for on this mesh. A dimension "*" is the first of the
// tensor that the axes divide. Where the mesh has none of the axes of a preset that wants any of them, their
// rules are there, to be refused as others are.
std::vector<ShardRule> expand_preset(std::string_view preset, const Mesh& mesh);

bool matches(std::string_view pattern, std::string_view name);  // '*' stands for any characters

struct Declaration {
  std::optional<Layout> layout;  // how the tensor lies, if a rule says so or it is state
  // How forward and backward pass take a weight, gathered for it if need be, and make a gradient, which is
  // scattered afterwards; of other tensors the same as `layout`.
  std::optional<Layout> used;
  // Which rule put an axis where it is, and which named the tensor last; for messages.
  std::map<AxisId, std::string> axis_origins;
  std::string origin;
};

// How strictly rules are taken. A part of a model has only some of its tensors: a rule may name none. A
// generation has some with fewer or smaller dimensions, too: what does not divide them stays whole.
enum class Rules : std::uint8_t { kAllMustApply, kThoseThatName, kThoseThatApply };

// One a tensor of `graph`. State that no rule names is replicated. Later rules of the user override earlier
// ones dimension by dimension, a rule with a whole layout in all of them. An updated state is declared like
// what it updates; a gradient and the optimizer's state like their weight is used, unless rules say how they
// are stored. Where a weight has a copy to compute with (TensorClass::kCopy), the copy is declared as the
// weight would be, and the weight as its moments. Throws kBadLayout, naming the rule and the legal sizes,
// when a dimension does not divide, an axis is unknown or used twice, a whole layout has not as many entries
// as the tensor dimensions, or a rule of the user matches nothing.
std::vector<Declaration> declare_layouts(const Graph& graph, const Mesh& mesh, const ParallelSpec& parallel,
                                         Rules strictness = Rules::kAllMustApply);

}  // namespace hyperrun

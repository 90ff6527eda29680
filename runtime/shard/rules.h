// Declared layouts. Presets and the user's rules name tensors by pattern and say which mesh axes split
// which of their dimensions; everything that no rule names is left to propagation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// The rules that a preset (runtime/ir/presets.h) stands for. A dimension "*" is the first of the tensor that
// the axes divide.
std::vector<ShardRule> expand_preset(std::string_view preset);

bool matches(std::string_view pattern, std::string_view name);  // '*' stands for any characters

// For each tensor of `graph` its declared layout, if a rule names it or it is state (whose layout is
// "replicated" without a rule). Later rules override earlier ones dimension by dimension; the user's
// come last. An updated state is declared like what it updates, a gradient like its weight.
// Throws kBadLayout, naming the rule and the legal sizes, when a dimension does not divide, an axis is
// unknown or used twice, or a rule of the user matches nothing.
std::vector<std::optional<Layout>> declare_layouts(const Graph& graph, const Mesh& mesh,
                                                   const ParallelSpec& parallel);

}  // namespace hyperrun

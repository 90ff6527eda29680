// MindSpore's notation of a layout: for each dimension of a tensor, in order, the mesh axis that splits it,
// several of them in parentheses (the major one first), or "None". The mesh may stand in front:
//
//   ("dp", "None", ("tp", "cp"))
//   Layout((2, 2), ("dp", "tp"))("dp", "tp")
//
// Quotes are single or double, None needs none, and a comma may precede ')'. Spaces do not matter.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/job.h"

namespace hyperrun {

// Parses a layout. Throws kBadValue, without a place, for any other text. Does not check that the mesh has
// the axes.
PositionalLayout parse_layout(std::string_view text);

// The layout as text with double quotes; parse_layout() reads it back.
std::string format_layout(const PositionalLayout& layout);

// 'Layout((2, 2), ("dp", "tp"))'
std::string format_mesh(const std::vector<MeshAxis>& mesh);

}  // namespace hyperrun

// MindSpore's notation of a layout: for each dimension of a tensor, in order, the mesh axis that splits it,
// several of them in parentheses (the major one first), or "None". The mesh may stand in front:
//
//   ("dp", "None", ("tp", "cp"))
//   Layout((2, 2), ("dp", "tp"))("dp", "tp")
//
// Quotes are single or double, None may have none, a comma may stand before ')'. Spaces mean nothing.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/job.h"

namespace hyperrun {

// Throws kBadValue, without a place, whatever else the text is. Whether the mesh has the axes is not looked
// at.
PositionalLayout parse_layout(std::string_view text);

// In double quotes; parse_layout() gives the same again.
std::string format_layout(const PositionalLayout& layout);

// 'Layout((2, 2), ("dp", "tp"))'
std::string format_mesh(const std::vector<MeshAxis>& mesh);

}  // namespace hyperrun

// Computes legal sizes of meshes, for messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/divisors.h"
#include "runtime/ir/job.h"

namespace hyperrun {

bool legal_axis_name(const std::string& name);

// The product of the axes' sizes; the largest int64 when that is exceeded.
std::int64_t mesh_size(const std::vector<MeshAxis>& mesh);

// "1, 2, 4, 8": a list of numbers; a long one is cut in the middle.
std::string list(const std::vector<std::int64_t>& numbers);

// The ways to spread `devices` over the axes of the mesh. Without a mesh, suggests one with a preset that
// uses it.
std::string legal_meshes(const ParallelSpec& parallel, std::int64_t devices);

// "dp, tp": the axes' names, or a text that there are none.
std::string axis_names(const std::vector<MeshAxis>& mesh);

}  // namespace hyperrun

// Dimension fusion: what the axes of a mesh are used for together, and where they lie on the machine. The
// data and the expert axis together, for example, reduce the gradients of what they both repeat, and the
// expert axis alone moves tokens to experts. Everything is read from the collectives of the compiled
// Programs, whatever preset or rule has caused them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Location of the groups of one kind on the levels of the machine.
struct GroupLocation {
  std::vector<std::string> levels;  // lowest level that contains a group; several if groups differ
  std::int64_t members_below = 1;   // most members within a unit of the level below
};

struct AxisLocation {
  std::string axis;
  std::int32_t size = 1;
  std::int64_t stride = 1;  // ranks from one member to the next
  GroupLocation location;
};

// Collectives of one kind that move bytes of one category.
struct FusedUse {
  std::string collective;  // "all-gather"
  Category moved = Category::kActivations;
  Pass pass = Pass::kForward;
  std::int64_t count = 0, bytes = 0;  // sent by a device in a step; the maximum over roles
  std::string largest;                // name of the largest buffer moved
};

struct FusedAxes {
  std::string axes;  // "dp+ep"
  std::int64_t devices = 1;
  GroupLocation location;
  std::vector<FusedUse> uses;  // the most bytes first
};

struct Fusion {
  std::vector<AxisLocation> axes;  // axes of the mesh, major first
  std::vector<FusedAxes> groups;   // in the order of their first use
};

// Reads the training step of the plan.
Fusion fusion_of(const Plan& plan, const SupernodeSpec& spec);

}  // namespace hyperrun

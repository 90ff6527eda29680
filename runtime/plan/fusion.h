// Dimension fusion: what the axes of a plan's mesh are used for together, and where they lie on the machine.
// An axis serves several purposes, and several axes one: the data and the expert axis together reduce the
// gradients of what they both repeat, and the expert axis alone brings tokens to experts. All of it is read
// from the compiled Programs' collectives, whatever preset or rule has put them there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Where groups of devices lie on the levels of the machine, groups of one kind together.
struct GroupsLie {
  std::vector<std::string> levels;  // the lowest that holds a group whole; several where groups differ
  std::int64_t side_by_side = 1;    // members that a unit of the level below holds, at most
};

struct AxisLies {
  std::string axis;
  std::int32_t size = 1;
  std::int64_t stride = 1;  // ranks from one of a group to the next
  GroupsLie lies;
};

// Collectives of one kind that move the same sort of bytes.
struct FusedUse {
  std::string collective;  // "all-gather"
  Category moved = Category::kActivations;
  Pass pass = Pass::kForward;
  std::int64_t count = 0, bytes = 0;  // a device sends in a step; where roles differ, that which sends most
  std::string largest;                // of the buffers that are moved, its name
};

struct FusedAxes {
  std::string axes;  // "dp+ep"
  std::int64_t devices = 1;
  GroupsLie lies;
  std::vector<FusedUse> uses;  // the most bytes first
};

struct Fusion {
  std::vector<AxisLies> axes;     // of the mesh, major first
  std::vector<FusedAxes> groups;  // in the order of their first use
};

// Of the plan's training step.
Fusion fusion_of(const Plan& plan, const SupernodeSpec& spec);

}  // namespace hyperrun

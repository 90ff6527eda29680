// State that several devices hold: the same part of the same tensor, with the same bits at every moment
// between two Programs.
//
//   dp 2 x tp 2, a weight split over tp      shared by {0, 2} and by {1, 3}
//   dp 2 x tp 2, a weight split over both    none
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// Two or more devices with the same part of a tensor.
struct SharedPart {
  struct Holder {
    int device = 0;
    std::size_t tensor = 0;  // index in the state of the device's role
    bool operator==(const Holder&) const = default;
  };

  std::string tensor;
  std::vector<Holder> holders;  // ascending by device
};

// All shared parts of the plan's state, in the order of the roles' state.
std::vector<SharedPart> shared_parts(const Plan& plan);

// For each tensor of a role's state: whether a device of the role shares its part with another one.
std::vector<bool> shared_state(const Plan& plan, std::size_t role);

}  // namespace hyperrun

// Placement of a strategy's axes on the machine, as far as lower bounds take it into account.
#pragma once

#include <vector>

#include "runtime/plan/layer_profile.h"

namespace hyperrun {

// Lower bounds for moving gradients and weights along the data axes, ns for a byte: the reduction, the part
// of it that is repeated in each backward pass, and the gather of weights that ZeRO splits.
struct Exchange {
  double reduce = 0, reduce_in_pass = 0, gather = 0;
};

// Costs for each category of weights of LayerProfile. For `narrow` weights ZeRO may split nothing.
struct DataTraffic {
  Exchange usual, wide, expert;
  double reduce_narrow = 0;
  // True if each gradient of the usual category is scattered over all data axes in every backward pass.
  bool scatters = false;
};

// Profiles and costs of a strategy's stages. Groups of stages that straddle two units of the machine are
// slower, so these stages have a profile of their own.
struct AxisPlacement {
  std::vector<bool> straddles;  // by stage; empty: none
  StepProfiles straddling_profiles;
  DataTraffic traffic, straddling_traffic;
};

}  // namespace hyperrun

// What lies beyond HBM, and where everything lies.
#pragma once

#include <vector>

#include "runtime/compile/place.h"
#include "runtime/ir/job.h"

namespace hyperrun {

// Of one role, whose Programs have neither places nor events: lets buffers move as the job's policy says where
// they do not fit into its HBM, then gives everything its place and adds events. What moves is decided by the
// training step; of all policies a Program that fits as it is has no transfers. One that cannot be made to
// fit is left as small as it came out (check_fits refuses it). `device`: of the role; its times count.
StatePlaces move_and_place(std::vector<Program>& programs, const Job& job, int device);

}  // namespace hyperrun

// What lies beyond HBM, and where everything lies.
#pragma once

#include <vector>

#include "runtime/compile/place.h"
#include "runtime/ir/job.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

// How much was tried until it was decided.
struct PlanningEffort {
  int plans = 0, fitting = 0;  // of these with places within the budget
};

// Of one role, whose Programs have neither places nor events: what has to lie beyond HBM, and when, so that
// they fit into its budget, as the job's policy decides it; nothing, of Programs that fit as they are. Where
// the homes of state are is decided by the training step, or, where there is none, by the Program that needs
// most. What cannot be made to fit is made as small as the
// policy can (check_fits refuses it). `device`: of the role; its times count.
std::vector<Absences> decide_moves(const std::vector<Program>& programs, const Job& job, int device,
                                   PlanningEffort* effort = nullptr);

// Adds the transfers, gives everything its place and adds events. `moves`: one of each Program.
StatePlaces move_and_place(std::vector<Program>& programs, const Job& job,
                           const std::vector<Absences>& moves);

}  // namespace hyperrun

// Jobs for the planner: models of real width, as nothing of them is ever computed.
#pragma once

#include "runtime/ir/job.h"

namespace hyperrun::testing {

// A Llama of `layers` layers on so many dies of Matrix384, which its batch keeps busy.
Job planned_llama(int devices, int layers, int batch);
// The same with experts from the second layer on.
Job planned_mixture(int devices, int layers, int batch);

}  // namespace hyperrun::testing

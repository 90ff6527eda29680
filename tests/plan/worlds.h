// Jobs for the planner: models of real width, as nothing of them is ever computed.
#pragma once

#include "runtime/ir/job.h"

namespace hyperrun::testing {

// A Llama of `layers` layers on so many dies of Matrix384, which its batch keeps busy.
Job planned_llama(int devices, int layers, int batch);
// One of a few narrow layers, so that gaps between tensors are much of its memory, on so many devices of a
// machine with little HBM, and a pool of eight times that.
Job planned_tiny(int devices, int layers, int batch, int sequence, Bytes hbm);
// The first with experts from the second layer on.
Job planned_mixture(int devices, int layers, int batch);

}  // namespace hyperrun::testing

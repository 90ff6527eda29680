// Jobs for planner tests. Models have real widths, because nothing is computed.
#pragma once

#include "runtime/ir/job.h"

namespace hyperrun::testing {

// A Llama on `devices` dies of Matrix384, with a batch that keeps them busy.
Job planned_llama(int devices, int layers, int batch);
// A model with narrow layers, whose memory is largely padding between tensors, on devices with little HBM and
// a pool of eight times that.
Job planned_tiny(int devices, int layers, int batch, int sequence, Bytes hbm);
// The same on GPUs with measured kernels, run by Megatron-LM, which joins products and takes turns.
Job planned_with_software(int devices, int layers, int batch);
// The first model with experts from the second layer on.
Job planned_mixture(int devices, int layers, int batch);

}  // namespace hyperrun::testing

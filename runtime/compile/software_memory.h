// Adds to Programs what the job's software keeps in HBM besides (Software in runtime/ir/machine.h).
#pragma once

#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Changes the Programs of one role, before their buffers are placed. Without software they stay as they are.
// A training step gets a buffer of state, "software", of the category of that name. Sums of gradients and
// copies of weights that the software keeps all the time become state, unless the job moves tensors between
// tiers. Sums that are scattered do not: their parts would be there twice.
void add_software_memory(std::vector<Program>& programs, const Job& job);

}  // namespace hyperrun

// Early updates: each weight is updated during the backward pass as soon as its gradient is complete, instead
// of at the end of the step. Gradients then die sooner, and transfers of optimizer state overlap with
// products. No result changes by a bit. If gradients are clipped, each update waits for the norm of all, and
// none can come early.
//
//   usual    backward 3, backward 2, backward 1, update 3, update 2, update 1
//   early    backward 3, backward 2, update 3, backward 1, update 2, update 1
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// The order of instructions with early updates, numbered as in do_in_order(); empty if no update can come
// earlier. `program` has neither offsets nor events. An update takes along its inputs, its consumers and the
// squares of its gradient. Messages and outputs of the step stay in place. An update is placed behind the
// exchange of its gradient, as timed for `device` without transfers, so it delays nothing on its stream.
std::vector<std::int32_t> early_updates(const Program& program, const Machine& machine, int device);

// Whether some update does not wait for the gradient norm. If false, early_updates() is empty; this is
// faster.
bool may_come_early(const Program& program);

// Splits the sum of all gradients' squares into one instruction per gradient and a final sum, then reorders
// the Program. The order of summation stays, so the sum has the same bits. Returns false if `order` has
// another number of instructions; the Program is unusable then.
bool do_in_order(Program& program, const std::vector<std::int32_t>& order);

}  // namespace hyperrun

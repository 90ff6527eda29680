// Updates of weights amid the backward pass, where their gradients are complete, and not at the step's end: a
// gradient is then gone as soon as it is used up, and what an update takes from beyond HBM travels beside
// products. Every bit stays. Where gradients are clipped each update waits for the norm of all, and none may
// come sooner.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// In which order to do the instructions of a Program that has neither places nor events, numbered as
// do_in_order() has them; empty, where no update may come sooner. With an update goes all that it needs or
// that follows from it, and the squares of its gradient; messages and what the step reports stay where they
// are. What stands behind an update on its stream does not wait for it: it comes when the exchange of its
// gradient is over, as `device` has it without transfers.
std::vector<std::int32_t> early_updates(const Program& program, const Machine& machine, int device);

// Whether some update may: it waits for no norm. If not, early_updates() is empty, and this takes less time.
bool may_come_early(const Program& program);

// Takes the sum of all gradients' squares, one instruction, as one of each gradient and their sum, and does
// instructions in the order. What is added up stays in its order, too: the sum has the same bits. Returns
// false where the order is not of as many instructions; the Program is then of no use.
bool do_in_order(Program& program, const std::vector<std::int32_t>& order);

}  // namespace hyperrun

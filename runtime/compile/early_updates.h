#pragma once

#include <optional>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// The Program, which has neither places nor events, with each weight's update amid the backward pass, where
// its gradient is complete, and not at the end; nothing, where no update may come sooner: the step has none,
// or each waits for the norm of all gradients, by which they are clipped. Every bit stays. A gradient is then
// gone as soon as it is used up, and what an update takes from beyond HBM travels beside products. What
// stands in between on the stream of an update is not held up by it: it comes where its gradient's exchange
// is over, as `device` is rehearsed without transfers.
std::optional<Program> with_early_updates(const Program& program, const Machine& machine, int device);

}  // namespace hyperrun

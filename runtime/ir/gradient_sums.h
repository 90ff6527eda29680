// The buffers in which a training step sums the gradients of weights up.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// Their indices in the Program: gradients that passes make and the update reads. Gradients that a pass itself
// exchanges (ZeRO 2 and 3) are no sums; what is left of them on a device is.
std::vector<std::int32_t> gradient_sums(const Program& program);

}  // namespace hyperrun

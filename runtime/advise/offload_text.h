#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/program.h"

namespace hyperrun {

// Describes offloading on the device that offloads most: the largest bytes of each category in the tier, the
// bytes moved, and the tensors rematerialised. "at most 6.76 MiB of optimizer, 1.00 MiB of activations of a
// device lie in the pool, 18.2 MiB move there and back, 3 tensors are made again".
std::string describe_offload(const Plan& plan, std::string_view program);

}  // namespace hyperrun

#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/program.h"

namespace hyperrun {

// Of the device with the most beyond HBM: how much of each category is there at once, what the Program moves
// there and back, and what leaves HBM to be made again: "at most 6.76 MiB of optimizer, 1.00 MiB of
// activations of a device lie in the pool, 18.2 MiB move there and back, 3 tensors are made again".
std::string words_of_beyond(const Plan& plan, std::string_view program);

}  // namespace hyperrun

#pragma once

#include <cstdint>
#include <string_view>

namespace hyperrun {

// A key for a tensor's random numbers from its name (FNV-1a, 64 bits): the same in every process and on every
// machine.
std::uint64_t tensor_key(std::string_view name);

}  // namespace hyperrun

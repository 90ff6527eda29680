// Hashes of a device's state, by which devices that hold the same part of a tensor are compared
// (runtime/ir/shared_parts.h), and the fault that they find.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device_memory.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// The hash of the device's part of each state tensor, in the order of its role's state; 0 for a part that no
// other device holds.
std::vector<std::uint64_t> state_hashes(const Plan& plan, int device, const DeviceMemory& memory);

// The hashes as a result carries them. Reading throws kControl unless there are `count`.
std::string hashes_to_bytes(std::span<const std::uint64_t> hashes);
std::vector<std::uint64_t> hashes_from_bytes(std::string_view bytes, std::size_t count);

// Flips a bit of the device's state, as a faulty memory would. The seed chooses it among the weights
// that another device holds, too, or among all if there are none. Returns its place: "bit 3 of byte
// 17 of layers.0.ffn.gate". No Program may be under way.
std::string flip_bit(const Plan& plan, int device, const DeviceMemory& memory, std::uint64_t seed);

}  // namespace hyperrun

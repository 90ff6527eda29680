#include "runtime/device/state_hashes.h"

#include <fmt/core.h>
#define XXH_STATIC_LINKING_ONLY  // for a state on the stack
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "runtime/base/error.h"
#include "runtime/ir/shared_parts.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 20;  // bytes read at once from beyond HBM

std::uint64_t hash_in_hbm(const StateTensor& t, const DeviceMemory& memory) {
  return XXH3_64bits(memory.hbm.view(t.offset, t.bytes).data(), static_cast<std::size_t>(t.bytes.value));
}

std::uint64_t hash_beyond(const StateTensor& t, const DeviceMemory& memory) {
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(kPiece, t.bytes.value)));
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (std::int64_t at = 0; at < t.bytes.value; at += kPiece) {
    const auto n = static_cast<std::size_t>(std::min(kPiece, t.bytes.value - at));
    memory.beyond(t.tier).read(t.offset + Bytes(at), std::span(piece).first(n));
    XXH3_64bits_update(&state, piece.data(), n);
  }
  return XXH3_64bits_digest(&state);
}

void flip(const StateTensor& t, const DeviceMemory& memory, std::int64_t byte, int bit) {
  const auto mask = static_cast<std::byte>(1 << bit);
  if (t.tier == Tier::kHbm) {
    memory.hbm.view(t.offset + Bytes(byte), Bytes(1))[0] ^= mask;
    return;
  }
  std::vector<std::byte> part(static_cast<std::size_t>(t.bytes.value));
  memory.beyond(t.tier).read(t.offset, part);
  part[static_cast<std::size_t>(byte)] ^= mask;
  memory.beyond(t.tier).write(t.offset, part);
}

}  // namespace

std::vector<std::uint64_t> state_hashes(const Plan& plan, int device, const DeviceMemory& memory) {
  const std::vector<bool> shared = shared_state(plan, plan.role_of(device));
  const std::vector<StateTensor>& state = plan.of_device(device).state;
  std::vector<std::uint64_t> hashes(state.size());
  for (std::size_t t = 0; t < state.size(); ++t)
    if (shared[t])
      hashes[t] = state[t].tier == Tier::kHbm ? hash_in_hbm(state[t], memory) : hash_beyond(state[t], memory);
  return hashes;
}

std::string hashes_to_bytes(std::span<const std::uint64_t> hashes) {
  std::string bytes(hashes.size_bytes(), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), hashes.data(), bytes.size());
  return bytes;
}

std::vector<std::uint64_t> hashes_from_bytes(std::string_view bytes, std::size_t count) {
  std::vector<std::uint64_t> hashes(count);
  if (bytes.size() != count * sizeof(std::uint64_t))
    throw Error(Code::kControl, fmt::format("{} bytes of hashes for {} tensors", bytes.size(), count));
  if (count > 0) std::memcpy(hashes.data(), bytes.data(), bytes.size());
  return hashes;
}

std::string flip_bit(const Plan& plan, int device, const DeviceMemory& memory, std::uint64_t seed) {
  const std::vector<StateTensor>& state = plan.of_device(device).state;
  const std::vector<bool> shared = shared_state(plan, plan.role_of(device));
  std::vector<const StateTensor*> weights;
  for (const bool any : {false, true}) {
    if (!weights.empty()) break;
    for (std::size_t t = 0; t < state.size(); ++t)
      if (state[t].cls == TensorClass::kWeight && (shared[t] || any)) weights.push_back(&state[t]);
  }
  std::int64_t bytes = 0;
  for (const StateTensor* w : weights) bytes += w->bytes.value;
  HR_CHECK(bytes > 0, "a device without weights");
  std::mt19937_64 random(seed);
  auto byte = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bytes));
  const int bit = static_cast<int>(random() % 8);
  auto chosen = weights.begin();
  for (; byte >= (*chosen)->bytes.value; ++chosen) byte -= (*chosen)->bytes.value;
  flip(**chosen, memory, byte, bit);
  return fmt::format("bit {} of byte {} of {}", bit, byte, (*chosen)->name);
}

}  // namespace hyperrun

// Moves parts of the state between devices, in pieces through the arena's space above the state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/types.h"
#include "runtime/device/state_files.h"

namespace hyperrun {

// The room for pieces: above the state of the device, below its highest peak. All pieces have one size, which
// is a multiple of the page size if there is room for one page.
struct Staging {
  std::byte* data;
  std::int64_t bytes;
};
Staging staging(const StateContext& c);

// Sends bytes to a device, or receives them from it. `data` lies in the arena.
void transfer(const StateContext& c, Collective kind, std::byte* data, std::int64_t bytes, int peer);

// Returns bytes of this device's part: in HBM, or fetched to the staging room.
std::byte* fetch(const StateContext& c, const StateTensor& t, std::int64_t at, std::int64_t n,
                 const Staging& stage);

// Tells every device what device 0 says. Collective.
bool agree(const StateContext& c, bool of_root);

// The sum of small numbers of all devices. Collective; all have begun it when one returns.
int sum_of_all(const StateContext& c, int own);

}  // namespace hyperrun

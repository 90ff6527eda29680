// The pool of a run over MPI: the memory that each device lends, and its part on whichever hosts.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "memory/backing.h"
#include "memory/remote_memory.h"
#include "memory/shared_window.h"

namespace hyperrun {

// A device's place in the pool.
struct MpiPool {
  std::unique_ptr<RemoteMemory> remote;  // null if every part lies on its device's host
  std::unique_ptr<Backing> part;         // of the device; may use `remote`
};

// One for each device of this process. Collective. `parts`: bytes by device, not all 0, together at most the
// budget; place_pool() places them. A window between hosts is made only if a part spans several hosts, and is
// tested before anything is computed. Throws kDoesNotFit if a host has no room for the memory that it lends,
// kMpi if MPI cannot reach other hosts. `cancel`: see RemoteMemory.
std::vector<MpiPool> make_mpi_pools(const MpiHosts& hosts, Bytes budget, std::span<const Bytes> parts,
                                    const std::atomic<bool>* cancel);

// Checks the room for one host with all devices, before anything is started there. `parts`: bytes of all
// devices together. `taken`: bytes of `available` that are allocated before the pool.
void require_pool_room(Bytes parts, int devices, int processes, Bytes taken,
                       Bytes available = free_shared_memory());

}  // namespace hyperrun

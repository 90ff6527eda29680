// The pool of a run over MPI: what this rank lends, and what its device has, wherever it lies.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "memory/backing.h"
#include "memory/remote_memory.h"
#include "memory/shared_window.h"

namespace hyperrun {

struct MpiPool {
  std::unique_ptr<RemoteMemory> remote;  // none where all parts lie on their devices' hosts
  std::unique_ptr<Backing> part;         // of this rank's device; uses `remote`
};

// Collective. parts: of each device, together at most the budget, some not empty; placed by place_pool. A
// window between hosts is made only where a part lies on several, and is tried out before anything is
// computed. Throws kDoesNotFit where a host has no room for what it is to lend, kMpi where MPI has no way
// between hosts. cancel: as RemoteMemory has it.
std::unique_ptr<MpiPool> make_mpi_pool(const MpiHosts& hosts, Bytes budget, std::span<const Bytes> parts,
                                       const std::atomic<bool>* cancel);

// The same of one host with all devices, before anything is started there. `parts`: of the devices together;
// `taken`: of `available`, by what comes before the pool.
void require_pool_room(Bytes parts, int ranks, Bytes taken, Bytes available = free_shared_memory());

}  // namespace hyperrun

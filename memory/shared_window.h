// Memory that the ranks of a host share, through MPI windows. Everything here is set-up: collective over
// the ranks, called by the thread that owns MPI, between MPI_Init and MPI_Finalize.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "memory/arena.h"
#include "memory/host.h"

namespace hyperrun {

// The ranks of a job and how they lie on hosts. Keeps communicators of its own.
class MpiHosts {
 public:
  // `isolate`: every rank counts as a host of its own, so that all traffic uses messages (tests).
  explicit MpiHosts(MPI_Comm world, bool isolate = false);
  ~MpiHosts();
  MpiHosts(const MpiHosts&) = delete;
  MpiHosts& operator=(const MpiHosts&) = delete;

  MPI_Comm world() const { return world_; }
  MPI_Comm host() const { return host_; }
  int rank() const { return rank_; }
  const Topology& topology() const { return topology_; }
  const std::vector<int>& local_ranks() const { return local_ranks_; }  // world ranks, ascending
  int local_index() const { return local_index_; }

 private:
  MPI_Comm world_ = MPI_COMM_NULL, host_ = MPI_COMM_NULL;
  int rank_ = 0, local_index_ = 0;
  Topology topology_;
  std::vector<int> local_ranks_;
};

// The free space in /dev/shm that a window of a host's ranks needs.
struct SharedNeed {
  int ranks = 0;
  Bytes segments{};  // bytes of all ranks
  Bytes beside{};    // for Open MPI

  Bytes total() const { return segments + beside; }
};
// `segments`: bytes of all ranks, with alignment.
SharedNeed window_need(Bytes segments, int ranks);
// The need of one arena of `each` for every rank, and the largest `each` that fits in `available` (0 if
// none).
SharedNeed arenas_need(Bytes each, int ranks);
Bytes largest_arena(Bytes available, int ranks);

// The free room for segments and the total memory of this host. require_shared_memory() throws kDoesNotFit if
// the need exceeds `available`.
Bytes free_shared_memory();
Bytes host_memory();
void require_shared_memory(const SharedNeed& need, Bytes available = free_shared_memory(),
                           Bytes memory = host_memory());

// One segment for each rank, addressable by all ranks of the host. The destructor frees the window, which is
// collective over the host.
class SharedWindow {
 public:
  // This rank asks for `bytes` (may be 0), aligned to `alignment`. Throws kDoesNotFit on every rank of the
  // host if /dev/shm has no room for all segments and MPI's own needs. Otherwise a SIGBUS would follow later,
  // or MPI would end the process.
  SharedWindow(const MpiHosts& hosts, Bytes bytes, Bytes alignment);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  std::byte* base(int local_index) const { return bases_[static_cast<std::size_t>(local_index)]; }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> bases_;
};

// This rank's slab in a host-shared window, of exactly the budget. The first `prefaulted` bytes (the planned
// peak; by default all) get their pages now, the others at their first touch.
Arena make_shared_arena(const MpiHosts& hosts, Bytes budget);
Arena make_shared_arena(const MpiHosts& hosts, Bytes budget, Bytes prefaulted);

}  // namespace hyperrun

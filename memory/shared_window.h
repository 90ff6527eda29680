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
  // isolate: every rank counts as a host of its own, so that all traffic takes messages (tests).
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

// What a window of the ranks of a host must find free in /dev/shm.
struct SharedNeed {
  int ranks = 0;
  Bytes segments{};  // of all ranks
  Bytes beside{};    // for Open MPI

  Bytes total() const { return segments + beside; }
};
// `segments`: of all ranks, each with what its alignment takes.
SharedNeed window_need(Bytes segments, int ranks);
// An arena of `each` for every rank; the largest `each` for which `available` is enough, 0 at least.
SharedNeed arenas_need(Bytes each, int ranks);
Bytes largest_arena(Bytes available, int ranks);

// What this host has left for segments, what memory it has at all, and the refusal when more is needed than
// is left: Error(kDoesNotFit).
Bytes free_shared_memory();
Bytes host_memory();
void require_shared_memory(const SharedNeed& need, Bytes available = free_shared_memory(),
                           Bytes memory = host_memory());

// One segment a rank, each addressable by all ranks of the host. Frees the window when destroyed, which is
// collective over the host.
class SharedWindow {
 public:
  // This rank asks for `bytes` (may be 0), aligned to `alignment`. Throws Error(kDoesNotFit) on every rank of
  // the host when /dev/shm has no room for all segments together and what MPI needs beside them (it would be
  // a SIGBUS later, or MPI would end the process).
  SharedWindow(const MpiHosts& hosts, Bytes bytes, Bytes alignment);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  std::byte* base(int local_index) const { return bases_[static_cast<std::size_t>(local_index)]; }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> bases_;
};

// The slab of this rank in a host-shared window: exactly the budget. `prefaulted` bytes from its start get
// their pages now: the planned peak, or all of it when nothing is planned; the rest would at first touch.
Arena make_shared_arena(const MpiHosts& hosts, Bytes budget);
Arena make_shared_arena(const MpiHosts& hosts, Bytes budget, Bytes prefaulted);

}  // namespace hyperrun

// Memory that the ranks of a host share, through MPI windows. Everything here is set-up: collective over
// the ranks, called by the thread that owns MPI, between MPI_Init and MPI_Finalize.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/arena.h"
#include "memory/host.h"
#include "memory/host_memory.h"
#include "runtime/base/device_block.h"

namespace hyperrun {

// The processes of a job, the devices that they host, and how these lie on hosts. Keeps communicators of its
// own.
class MpiHosts {
 public:
  // `isolate`: every process counts as a host of its own, so that all traffic between processes uses messages
  // (tests). `devices`: the devices of all processes together (device_block.h); 0: one for each process.
  explicit MpiHosts(MPI_Comm world, bool isolate = false, int devices = 0);
  ~MpiHosts();
  MpiHosts(const MpiHosts&) = delete;
  MpiHosts& operator=(const MpiHosts&) = delete;

  MPI_Comm world() const { return world_; }
  MPI_Comm host() const { return host_; }
  int rank() const { return rank_; }  // of this process in world()
  int processes() const { return processes_; }
  int local_processes() const { return local_processes_; }  // processes of this host
  DeviceBlock devices() const { return block(rank_); }      // devices of this process
  DeviceBlock block(int process) const { return block_of(process, processes_, topology_.size()); }
  int process(int device) const { return process_of(device, processes_, topology_.size()); }
  // The hosts of the devices.
  const Topology& topology() const { return topology_; }
  const std::vector<int>& local_devices() const { return local_devices_; }  // devices of this host, ascending
  // Gathers a number of each device of this host, or of all devices. Collective; `own` has one for each
  // device of this process.
  std::vector<std::int64_t> gather_on_host(std::span<const std::int64_t> own) const;
  std::vector<std::int64_t> gather(std::span<const std::int64_t> own) const;

 private:
  std::vector<std::int64_t> gather(MPI_Comm comm, std::span<const std::int64_t> own) const;

  MPI_Comm world_ = MPI_COMM_NULL, host_ = MPI_COMM_NULL;
  int rank_ = 0, processes_ = 1, local_processes_ = 1;
  Topology topology_;
  std::vector<int> local_devices_;
};

// The free space in /dev/shm that a window of a host's processes needs.
struct SharedNeed {
  Bytes segments{};  // bytes of all devices
  Bytes beside{};    // for Open MPI

  Bytes total() const { return segments + beside; }
};
// `segments`: bytes of all devices, with alignment.
SharedNeed window_need(Bytes segments, int processes);
// The need of one arena of `each` for every device, and the largest `each` that fits in `available` (0 if
// none).
SharedNeed arenas_need(Bytes each, int devices, int processes);
Bytes largest_arena(Bytes available, int devices, int processes);
// The same for processes with one device each.
inline SharedNeed arenas_need(Bytes each, int devices) { return arenas_need(each, devices, devices); }
inline Bytes largest_arena(Bytes available, int devices) {
  return largest_arena(available, devices, devices);
}

// Throws kUnwritable if the files of shared memory are larger than this process may write (ulimit -f). A
// process alone on its host has one for its messages, too.
void require_file_size(const SharedNeed& need);

// The same. Throws kDoesNotFit if the need exceeds `available`, the free room for segments. `memory` is the
// host's.
void require_shared_memory(const SharedNeed& need, Bytes available = free_shared_memory(),
                           Bytes memory = host_memory());

// One segment for each device, addressable by all processes of the host. The destructor frees the window,
// which is collective over the host.
class SharedWindow {
 public:
  // `own`: bytes of the segment of each device of this process; they may be 0. Segments begin at multiples of
  // `alignment`. Throws kDoesNotFit on every process of the host if /dev/shm has no room for all segments and
  // MPI's own needs. Otherwise a SIGBUS would follow later, or MPI would end the process.
  SharedWindow(const MpiHosts& hosts, std::span<const Bytes> own, Bytes alignment);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  // The segment of a device of this host, by its place in MpiHosts::local_devices().
  // Fresh memory is zero.
  std::byte* base(std::size_t local_device) const { return bases_[local_device]; }

 private:
  std::byte* allocate(const MpiHosts& hosts, Bytes bytes);
  std::byte* first_byte_of(int local_process) const;

  MPI_Win window_ = MPI_WIN_NULL;     // null if the process has its host to itself
  std::shared_ptr<std::byte> alone_;  // private memory of such a process
  std::vector<std::byte*> bases_;
};

// The slabs of this process's devices in a host-shared window, each of exactly its budget. All pages are
// taken now, so that no step pays for a first touch.
std::vector<Arena> make_shared_arenas(const MpiHosts& hosts, std::span<const Bytes> budgets);
std::vector<Arena> make_shared_arenas(const MpiHosts& hosts, Bytes budget);  // the same for each device

// The same for a process with one device. The first `prefaulted` bytes get their pages now, the others at
// their first touch.
Arena make_shared_arena(const MpiHosts& hosts, Bytes budget);
Arena make_shared_arena(const MpiHosts& hosts, Bytes budget, Bytes prefaulted);

}  // namespace hyperrun

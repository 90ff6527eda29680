#include "memory/shared_window.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/file_size_limit.h"

namespace hyperrun {
namespace {

constexpr Bytes kHugePage{2 << 20};
constexpr const char* kShmDirectory = "/dev/shm";

// Room that Open MPI 4.1 needs beside the segments. It ends the process if the file of a window does not
// leave so much free (opal/mca/shmem/mmap).
constexpr std::int64_t kFreeBeside = 20;  // a twentieth of the file must stay free
// Bytes of the file for a rank besides its segment: padding to a page, and MPI's own data.
constexpr Bytes kOfWindow{8 << 10};
// Messages of a rank to others of its host use a file that begins empty (btl_vader_segment_size) and grows
// page by page. If there is no room then, the process gets a SIGBUS.
constexpr Bytes kOfMessages{(4 << 20) + (4 << 10)};

void check(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(rc, text, &length);
  throw Error(Code::kMpi, std::string(what) + ": " + std::string(text, static_cast<std::size_t>(length)))
      .fix("see `ompi_info` and the log of mpirun");
}

// One rank measures and tells all others: allocations must not be counted twice.
void check_space(const MpiHosts& hosts, Bytes mine) {
  std::int64_t total = 0;
  std::int64_t available = 0;
  MPI_Allreduce(&mine.value, &total, 1, MPI_INT64_T, MPI_SUM, hosts.host());
  if (hosts.local_index() == 0) available = free_shared_memory().value;
  MPI_Bcast(&available, 1, MPI_INT64_T, 0, hosts.host());
  require_shared_memory(window_need(Bytes(total), static_cast<int>(hosts.local_ranks().size())),
                        Bytes(available));
}

// Several ranks of a host share one file, and each rank has one for its messages.
void require_file_size(const SharedNeed& need) {
  const Bytes limit(file_size_limit()),
      largest = need.ranks > 1 ? std::max(need.segments, kOfMessages) : kOfMessages;
  if (largest <= limit) return;
  throw Error(Code::kUnwritable, fmt::format("shared memory takes a file of {}, and a "
                                             "process may write files of {} only",
                                             to_string(largest), to_string(limit)))
      .at(kShmDirectory)
      .fix(kRaiseFileSizeLimit);
}

std::byte* align_up(std::byte* p, Bytes alignment) {
  const auto a = static_cast<std::uintptr_t>(alignment.value);
  return p + (a - reinterpret_cast<std::uintptr_t>(p) % a) % a;
}

}  // namespace

// A single rank has its window in private memory and sends no messages.
SharedNeed window_need(Bytes segments, int ranks) {
  if (ranks <= 1) return {ranks, segments, {}};
  const Bytes state = kOfWindow * ranks;
  return {ranks, segments, state + std::max((segments + state) / kFreeBeside, kOfMessages * ranks)};
}

SharedNeed arenas_need(Bytes each, int ranks) { return window_need((each + kHugePage) * ranks, ranks); }

Bytes largest_arena(Bytes available, int ranks) {
  Bytes segments = available;
  if (ranks > 1)
    segments = std::min(available - (available + Bytes(kFreeBeside)) / (kFreeBeside + 1),
                        available - kOfMessages * ranks) -
               kOfWindow * ranks;
  return std::max(Bytes(0), segments / ranks - kHugePage);
}

Bytes free_shared_memory() {
  struct statvfs s {};
  if (statvfs(kShmDirectory, &s) != 0) return Bytes(INT64_MAX);
  return Bytes(static_cast<std::int64_t>(s.f_bavail) * static_cast<std::int64_t>(s.f_frsize));
}

Bytes host_memory() {
  return Bytes(std::int64_t{sysconf(_SC_PHYS_PAGES)} * std::int64_t{sysconf(_SC_PAGESIZE)});
}

void require_shared_memory(const SharedNeed& need, Bytes available, Bytes memory) {
  require_file_size(need);
  const Bytes total = need.total();
  if (total <= available) return;
  const std::string larger =
      total <= memory
          ? fmt::format("remove stale files there, or enlarge it: mount -o remount,size={}G {}",
                        total.value / kGiB.value + 1, kShmDirectory)
          : fmt::format("or take more hosts: this one has {} of memory in all", to_string(memory));
  const std::string beside = need.beside.value > 0
                                 ? fmt::format(" ({} of it for MPI and its messages)", to_string(need.beside))
                                 : "";
  throw Error(Code::kDoesNotFit, fmt::format("the ranks of this host need {} of shared memory{}, {} are free",
                                             to_string(total), beside, to_string(available)))
      .at(kShmDirectory)
      .legal(fmt::format("{} bytes free, or more", total.value))
      .fix("lower supernode.hbm, use fewer ranks a host, " + larger);
}

MpiHosts::MpiHosts(MPI_Comm world, bool isolate) {
  int size = 0;
  check(MPI_Comm_dup(world, &world_), "MPI_Comm_dup");
  MPI_Comm_rank(world_, &rank_);
  MPI_Comm_size(world_, &size);
  if (isolate) {
    check(MPI_Comm_split(world_, rank_, 0, &host_), "MPI_Comm_split");
  } else {
    check(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host_),
          "MPI_Comm_split_type");
  }
  MPI_Comm_rank(host_, &local_index_);
  int leader = rank_;  // hosts are identified by their lowest rank and numbered in order of appearance
  MPI_Bcast(&leader, 1, MPI_INT, 0, host_);
  std::vector<int> leaders(static_cast<std::size_t>(size));
  MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, world_);
  std::map<int, int> number;
  for (const int l : leaders) {
    topology_.host_of.push_back(number.try_emplace(l, static_cast<int>(number.size())).first->second);
  }
  local_ranks_ = topology_.peers(rank_);
}

// Freeing is collective, so it is skipped while an error unwinds: the peers would never join.
MpiHosts::~MpiHosts() {
  if (std::uncaught_exceptions() > 0) return;
  MPI_Comm_free(&host_);
  MPI_Comm_free(&world_);
}

SharedWindow::SharedWindow(const MpiHosts& hosts, Bytes bytes, Bytes alignment) {
  const Bytes padded = bytes + alignment;  // Open MPI does not align segments
  check_space(hosts, padded);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");  // segments start on pages of their own
  void* mine = nullptr;
  const int rc = MPI_Win_allocate_shared(padded.value, 1, info, hosts.host(), &mine, &window_);
  MPI_Info_free(&info);
  check(rc, "MPI_Win_allocate_shared");
  // Alignment of the virtual address differs between processes unless it stays within a page: the owner
  // decides and tells its offset.
  std::int64_t offset = align_up(static_cast<std::byte*>(mine), alignment) - static_cast<std::byte*>(mine);
  std::vector<std::int64_t> offsets(hosts.local_ranks().size());
  MPI_Allgather(&offset, 1, MPI_INT64_T, offsets.data(), 1, MPI_INT64_T, hosts.host());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    MPI_Aint size = 0;
    int unit = 0;
    void* base = nullptr;
    check(MPI_Win_shared_query(window_, static_cast<int>(i), &size, &unit, &base), "MPI_Win_shared_query");
    bases_.push_back(static_cast<std::byte*>(base) + offsets[i]);
  }
}

SharedWindow::~SharedWindow() {
  if (window_ != MPI_WIN_NULL && std::uncaught_exceptions() == 0) MPI_Win_free(&window_);
}

Arena make_shared_arena(const MpiHosts& hosts, Bytes budget) {
  return make_shared_arena(hosts, budget, budget);
}

Arena make_shared_arena(const MpiHosts& hosts, Bytes budget, Bytes prefaulted) {
  auto window = std::make_shared<SharedWindow>(hosts, budget, kHugePage);
  std::vector<std::byte*> slabs(static_cast<std::size_t>(hosts.topology().size()), nullptr);
  for (std::size_t i = 0; i < hosts.local_ranks().size(); ++i) {
    slabs[static_cast<std::size_t>(hosts.local_ranks()[i])] = window->base(static_cast<int>(i));
  }
  std::byte* own = slabs[static_cast<std::size_t>(hosts.rank())];
  madvise(own, static_cast<std::size_t>(budget.value), MADV_HUGEPAGE);  // only advice; most tmpfs refuse it
  // First touches dominate the start-up time and are the kernel's work. Each rank uses its share of the
  // cores.
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  prefault(own, std::min(budget, prefaulted),
           std::max(1, cores / static_cast<int>(hosts.local_ranks().size())));
  return {budget, hosts.rank(), std::move(slabs), std::move(window)};
}

}  // namespace hyperrun

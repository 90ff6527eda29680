#include "memory/shared_window.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <numeric>
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
// Bytes of the file for a process besides its segments: padding to a page, and MPI's own data.
constexpr Bytes kOfWindow{8 << 10};
// Messages of a process to others of its host use a file that begins empty (btl_vader_segment_size) and grows
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

void require_private_memory(Bytes bytes) {
  const Bytes available = available_memory();
  if (bytes <= available) return;
  throw Error(Code::kDoesNotFit, fmt::format("the devices of this host need {} of memory, {} are left",
                                             to_string(bytes), to_string(available)))
      .at("this host")
      .legal(fmt::format("{} bytes free, or more", bytes.value))
      .fix("use fewer devices a host, or smaller ones");
}

// One process measures and tells all others: allocations must not be counted twice.
void check_space(const MpiHosts& hosts, Bytes mine) {
  if (hosts.local_processes() == 1) return require_private_memory(mine);
  std::int64_t total = 0;
  std::int64_t available = 0;
  MPI_Allreduce(&mine.value, &total, 1, MPI_INT64_T, MPI_SUM, hosts.host());
  if (hosts.devices().first == hosts.local_devices().front()) available = free_shared_memory().value;
  MPI_Bcast(&available, 1, MPI_INT64_T, 0, hosts.host());
  require_shared_memory(window_need(Bytes(total), hosts.local_processes()), Bytes(available));
}

std::byte* align_up(std::byte* p, Bytes alignment) {
  const auto a = static_cast<std::uintptr_t>(alignment.value);
  return p + (a - reinterpret_cast<std::uintptr_t>(p) % a) % a;
}

Bytes round_up(Bytes b, Bytes to) { return (b + to - Bytes(1)) / to.value * to.value; }

}  // namespace

// A single process has its window in private memory and sends no messages.
SharedNeed window_need(Bytes segments, int processes) {
  if (processes <= 1) return {segments, {}};
  const Bytes state = kOfWindow * processes;
  return {segments, state + std::max((segments + state) / kFreeBeside, kOfMessages * processes)};
}

SharedNeed arenas_need(Bytes each, int devices, int processes) {
  return window_need((each + kHugePage) * devices, processes);
}

Bytes largest_arena(Bytes available, int devices, int processes) {
  Bytes segments = available;
  if (processes > 1)
    segments = std::min(available - (available + Bytes(kFreeBeside)) / (kFreeBeside + 1),
                        available - kOfMessages * processes) -
               kOfWindow * processes;
  return std::max(Bytes(0), segments / devices - kHugePage);
}

// The processes of a host share one file for the segments, and each has one for its messages.
void require_file_size(const SharedNeed& need) {
  const Bytes limit(file_size_limit()),
      largest = need.beside.value > 0 ? std::max(need.segments, kOfMessages) : kOfMessages;
  if (largest <= limit) return;
  throw Error(Code::kUnwritable, fmt::format("shared memory takes a file of {}, and a "
                                             "process may write files of {} only",
                                             to_string(largest), to_string(limit)))
      .at(kShmDirectory)
      .fix(kRaiseFileSizeLimit);
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
  throw Error(Code::kDoesNotFit,
              fmt::format("the devices of this host need {} of shared memory{}, {} are free",
                          to_string(total), beside, to_string(available)))
      .at(kShmDirectory)
      .legal(fmt::format("{} bytes free, or more", total.value))
      .fix("use fewer devices a host, a single rank (--ranks 1), which needs none, " + larger);
}

MpiHosts::MpiHosts(MPI_Comm world, bool isolate, int devices) {
  check(MPI_Comm_dup(world, &world_), "MPI_Comm_dup");
  MPI_Comm_rank(world_, &rank_);
  MPI_Comm_size(world_, &processes_);
  if (devices == 0) devices = processes_;
  HR_CHECK(devices >= processes_, "a process without a device");
  if (isolate) {
    check(MPI_Comm_split(world_, rank_, 0, &host_), "MPI_Comm_split");
  } else {
    check(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host_),
          "MPI_Comm_split_type");
  }
  MPI_Comm_size(host_, &local_processes_);
  int leader = rank_;  // hosts are identified by their lowest rank and numbered in order of appearance
  MPI_Bcast(&leader, 1, MPI_INT, 0, host_);
  std::vector<int> leaders(static_cast<std::size_t>(processes_));
  MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, world_);
  std::map<int, int> number;
  for (int d = 0; d < devices; ++d) {
    const int l = leaders[static_cast<std::size_t>(process_of(d, processes_, devices))];
    topology_.host_of.push_back(number.try_emplace(l, static_cast<int>(number.size())).first->second);
  }
  local_devices_ = topology_.peers(this->devices().first);
}

// The processes of a communicator hold consecutive blocks in the order of their ranks.
std::vector<std::int64_t> MpiHosts::gather(MPI_Comm comm, std::span<const std::int64_t> own) const {
  int size = 0;
  MPI_Comm_size(comm, &size);
  const int mine = static_cast<int>(own.size());
  std::vector<int> counts(static_cast<std::size_t>(size)), starts(counts.size());
  MPI_Allgather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, comm);
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  std::vector<std::int64_t> all(static_cast<std::size_t>(starts.back() + counts.back()));
  MPI_Allgatherv(own.data(), mine, MPI_INT64_T, all.data(), counts.data(), starts.data(), MPI_INT64_T, comm);
  return all;
}

std::vector<std::int64_t> MpiHosts::gather_on_host(std::span<const std::int64_t> own) const {
  return gather(host_, own);
}

std::vector<std::int64_t> MpiHosts::gather(std::span<const std::int64_t> own) const {
  return gather(world_, own);
}

// Freeing is collective, so it is skipped while an error unwinds: the peers would never join.
MpiHosts::~MpiHosts() {
  if (std::uncaught_exceptions() > 0) return;
  MPI_Comm_free(&host_);
  MPI_Comm_free(&world_);
}

SharedWindow::SharedWindow(const MpiHosts& hosts, std::span<const Bytes> own, Bytes alignment) {
  Bytes padded = alignment + own.back();  // Open MPI does not align segments
  for (const Bytes b : own.first(own.size() - 1)) padded += round_up(b, alignment);
  check_space(hosts, padded);
  std::byte* const mine = allocate(hosts, padded);
  // Alignment of the virtual address differs between processes unless it stays within a page: the owner
  // decides and tells its offsets.
  std::vector<std::int64_t> offsets;
  std::byte* next = align_up(mine, alignment);
  for (const Bytes b : own) {
    offsets.push_back(next - mine);
    next += round_up(b, alignment).value;
  }
  offsets = hosts.gather_on_host(offsets);
  const std::vector<int>& devices = hosts.local_devices();
  int process = 0;  // place of the device's process among those of the host, which have ascending blocks
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (i > 0 && hosts.process(devices[i]) != hosts.process(devices[i - 1])) ++process;
    bases_.push_back(first_byte_of(process) + offsets[i]);
  }
}

std::byte* SharedWindow::allocate(const MpiHosts& hosts, Bytes bytes) {
  if (hosts.local_processes() == 1) return (alone_ = map_memory(bytes)).get();
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");  // segments start on pages of their own
  void* mine = nullptr;
  const int rc = MPI_Win_allocate_shared(bytes.value, 1, info, hosts.host(), &mine, &window_);
  MPI_Info_free(&info);
  check(rc, "MPI_Win_allocate_shared");
  return static_cast<std::byte*>(mine);
}

std::byte* SharedWindow::first_byte_of(int local_process) const {
  if (window_ == MPI_WIN_NULL) return alone_.get();
  MPI_Aint size = 0;
  int unit = 0;
  void* base = nullptr;
  check(MPI_Win_shared_query(window_, local_process, &size, &unit, &base), "MPI_Win_shared_query");
  return static_cast<std::byte*>(base);
}

SharedWindow::~SharedWindow() {
  if (window_ != MPI_WIN_NULL && std::uncaught_exceptions() == 0) MPI_Win_free(&window_);
}

namespace {

std::vector<Arena> make_arenas(const MpiHosts& hosts, std::span<const Bytes> budgets, Bytes prefaulted) {
  const auto window = std::make_shared<SharedWindow>(hosts, budgets, kHugePage);
  std::vector<std::byte*> slabs(static_cast<std::size_t>(hosts.topology().size()), nullptr);
  for (std::size_t i = 0; i < hosts.local_devices().size(); ++i)
    slabs[static_cast<std::size_t>(hosts.local_devices()[i])] = window->base(i);
  // First touches dominate the start-up time and are the kernel's work. Each process uses its share of the
  // cores.
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  std::vector<Arena> arenas;
  for (std::size_t d = 0; d < budgets.size(); ++d) {
    const int device = hosts.devices().first + static_cast<int>(d);
    std::byte* own = slabs[static_cast<std::size_t>(device)];
    // This is only advice; most tmpfs refuse it.
    madvise(own, static_cast<std::size_t>(budgets[d].value), MADV_HUGEPAGE);
    prefault(own, std::min(budgets[d], prefaulted), std::max(1, cores / hosts.local_processes()));
    arenas.emplace_back(budgets[d], device, slabs, window);
  }
  return arenas;
}

}  // namespace

std::vector<Arena> make_shared_arenas(const MpiHosts& hosts, std::span<const Bytes> budgets) {
  return make_arenas(hosts, budgets, Bytes(INT64_MAX));
}

std::vector<Arena> make_shared_arenas(const MpiHosts& hosts, Bytes budget) {
  const std::vector<Bytes> budgets(static_cast<std::size_t>(hosts.devices().count), budget);
  return make_shared_arenas(hosts, budgets);
}

Arena make_shared_arena(const MpiHosts& hosts, Bytes budget) {
  return make_shared_arena(hosts, budget, budget);
}

Arena make_shared_arena(const MpiHosts& hosts, Bytes budget, Bytes prefaulted) {
  HR_CHECK(hosts.devices().count == 1);
  return std::move(make_arenas(hosts, {&budget, 1}, prefaulted).front());
}

}  // namespace hyperrun

#include "runtime/rank/room.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "memory/backing.h"
#include "memory/host_memory.h"
#include "memory/mpi_pool.h"
#include "memory/shared_window.h"
#include "runtime/base/error.h"
#include "runtime/rank/sessions.h"

namespace hyperrun {
namespace {

// Memory of a process that starts MPI, and of a device beside its HBM, with room above what was measured
// (bench/results/scale.md).
constexpr Bytes kOfProcess{40 << 20}, kOfDevice{2 << 20};

// The devices' parts of the pool, the smallest first.
std::vector<Bytes> pool_parts(std::span<const Session> sessions, std::span<const int> devices) {
  std::vector<Bytes> parts;
  for (const int device : devices) parts.push_back(peak_of_rank(sessions, device, Tier::kPool));
  std::ranges::sort(parts);
  return parts;
}

Bytes sum(std::span<const Bytes> parts) { return std::accumulate(parts.begin(), parts.end(), Bytes(0)); }

std::vector<int> all_devices(const Job& job) {
  std::vector<int> all(static_cast<std::size_t>(job.supernode.devices));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// `parts`: parts of the pool of the host's devices.
void require_memory(Bytes hbm, std::span<const Bytes> parts, int processes) {
  const std::int64_t devices = std::ssize(parts);
  const Bytes pool = sum(parts), of_devices = (hbm + kOfDevice) * devices + pool;
  const Bytes need = of_devices + kOfProcess * processes, available = available_memory();
  if (need <= available) return;
  const Bytes left = std::max(Bytes(0), available - kOfProcess * processes);
  throw Error(Code::kDoesNotFit,
              fmt::format("{} {} of this host need {} of memory ({} of HBM each{}), and {} are left", devices,
                          devices == 1 ? "device" : "devices", to_string(need), to_string(hbm),
                          pool.value > 0 ? fmt::format(", {} of the pool", to_string(pool)) : "",
                          to_string(available)))
      .at("this host")
      .legal(fmt::format("up to {} such devices, or {} of up to {} each",
                         left.value * devices / of_devices.value, devices, to_string(left / devices)))
      .fix(
          "take more hosts or a smaller supernode, or a smaller batch or model, so that a device needs less");
}

}  // namespace

void require_memory(std::span<const Session> sessions, std::span<const int> devices, int processes) {
  require_memory(touched_hbm(sessions), pool_parts(sessions, devices), processes);
}

void require_memory(const Job& job, std::span<const Session> sessions, const OnThisHost& here) {
  if (here.devices == 0) return;
  const Bytes hbm = touched_hbm(sessions);
  const std::vector<Bytes> parts = pool_parts(sessions, all_devices(job));
  require_memory(hbm, std::span(parts).first(static_cast<std::size_t>(here.devices)), here.processes);
  if (here.processes > 1)
    require_shared_memory(arenas_need(hbm, here.devices, here.processes));
  else
    require_file_size({});
}

void require_room_for_pool(const Job& job, std::span<const Session> sessions, const OnThisHost& here) {
  const Bytes pool = sum(pool_parts(sessions, all_devices(job)));
  if (pool.value == 0 || here.devices != job.supernode.devices || here.processes == 1) return;
  require_pool_room(pool, here.devices, here.processes, touched_hbm(sessions) * here.devices);
}

void require_room_for_flash(const Job& job, std::span<const Session> sessions, const OnThisHost& here,
                            const std::filesystem::path& folder) {
  std::vector<Bytes> of_devices;
  for (int device = 0; device < job.supernode.devices; ++device)
    of_devices.push_back(peak_of_rank(sessions, device, Tier::kFlash));
  std::ranges::sort(of_devices);
  of_devices.resize(std::min(of_devices.size(), static_cast<std::size_t>(here.devices)));
  require_flash_room(folder, of_devices);
}

std::filesystem::path require_room(const Session& session, int ranks) {
  const Job& job = session.job;
  const OnThisHost here{job.supernode.devices, ranks};
  std::error_code not_there;
  std::filesystem::path folder = std::filesystem::temp_directory_path(not_there);
  if (not_there)
    throw Error(Code::kUnwritable, "the folder for temporary files is not there")
        .at("TMPDIR")
        .fix("set it to a folder that you may write to");
  const std::span<const Session> sessions(&session, 1);
  require_memory(job, sessions, here);
  require_room_for_pool(job, sessions, here);
  try {
    require_room_for_flash(job, sessions, here, folder);
  } catch (Error& e) {
    throw e.fix("make room there, or set TMPDIR to a folder on a larger disk");
  }
  return folder;
}

}  // namespace hyperrun

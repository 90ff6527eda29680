#include "runtime/run/room.h"

#include <fmt/core.h>

#include <algorithm>
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
#include "runtime/run/drive.h"

namespace hyperrun {
namespace {

// Memory of a process that starts MPI, and of a device beside its HBM, as measured (bench/results/scale.md).
constexpr Bytes kOfProcess{40 << 20}, kOfDevice{2 << 20};

Bytes pool_of(const Job& job, std::span<const Session> sessions) {
  Bytes pool{};
  for (int device = 0; device < job.supernode.devices; ++device)
    pool += peak_of_rank(sessions, device, Tier::kPool);
  return pool;
}

Error too_little_memory(Bytes need, Bytes available, Bytes each, const OnThisHost& here) {
  const Bytes left = std::max(Bytes(0), available - kOfProcess * here.processes);
  const Bytes largest = left / here.devices;
  return Error(Code::kDoesNotFit,
               fmt::format("{} devices of this host need {} of memory, {} each, and {} are left",
                           here.devices, to_string(need), to_string(each), to_string(available)))
      .at("this host")
      .legal(fmt::format("up to {} such devices, or {} of up to {} each", left.value / each.value,
                         here.devices, to_string(largest)))
      .fix(
          "take more hosts or a smaller supernode, or a smaller batch or model, so that a device needs less");
}

}  // namespace

void require_memory(std::span<const Session> sessions, const OnThisHost& here) {
  if (here.devices == 0) return;
  const Bytes hbm = touched_hbm(sessions);
  Bytes pool{};
  for (int d = 0; d < here.devices; ++d) pool = std::max(pool, peak_of_rank(sessions, d, Tier::kPool));
  const Bytes each = hbm + pool + kOfDevice;
  const Bytes need = each * here.devices + kOfProcess * here.processes;
  if (const Bytes available = available_memory(); need > available)
    throw too_little_memory(need, available, each, here);
  if (here.processes > 1)
    require_shared_memory(arenas_need(hbm, here.devices, here.processes));
  else
    require_file_size({});
}

void require_room_for_pool(const Job& job, std::span<const Session> sessions, const OnThisHost& here) {
  const Bytes pool = pool_of(job, sessions);
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

std::filesystem::path require_room(const Session& session) {
  const Job& job = session.job;
  const OnThisHost here{job.supernode.devices, ranks_of_this_host(job.supernode.devices)};
  std::error_code not_there;
  std::filesystem::path folder = std::filesystem::temp_directory_path(not_there);
  if (not_there)
    throw Error(Code::kUnwritable, "the folder for temporary files is not there")
        .at("TMPDIR")
        .fix("set it to a folder that you may write to");
  const std::span<const Session> sessions(&session, 1);
  require_memory(sessions, here);
  require_room_for_pool(job, sessions, here);
  try {
    require_room_for_flash(job, sessions, here, folder);
  } catch (Error& e) {
    throw e.fix("make room there, or set TMPDIR to a folder on a larger disk");
  }
  return folder;
}

}  // namespace hyperrun

#include "memory/mpi_pool.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include "memory/mpi_one_sided.h"
#include "memory/pool_placement.h"
#include "memory/spread_pool.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::chrono::seconds kTrial{20};  // a host that takes longer is considered unreachable
constexpr const char* kPlace = "supernode.pool";

Error of_the_pool(const Error& e) {
  if (e.code() != Code::kDoesNotFit) return e;
  return Error(Code::kDoesNotFit, "this host's share of the pool has no room: " + e.cause())
      .at(e.place())
      .legal(e.legal())
      .fix(
          "lower supernode.pool, raise supernode.hbm so that less lies in the pool, take memory.tier "
          "\"flash\" or fewer devices on that host; or remove stale files there, or enlarge it");
}

std::vector<Arena> make_segments(const MpiHosts& hosts, std::span<const Bytes> bytes) try {
  return make_shared_arenas(hosts, bytes);
} catch (const Error& e) {
  throw of_the_pool(e);
}

std::string components() {
  const char* osc = std::getenv("OMPI_MCA_osc");
  return osc == nullptr ? "OMPI_MCA_osc is not set" : "OMPI_MCA_osc is \"" + std::string(osc) + "\"";
}

Error no_way(const MpiHosts& hosts, std::span<const Bytes> parts, Bytes elsewhere, const std::string& cause) {
  const Bytes enough = pool_without_spill(hosts.topology(), parts);
  return Error(Code::kMpi,
               fmt::format("parts of the pool do not fit into their hosts' shares of it ({} lie on other "
                           "hosts), and MPI gives no access to memory of other hosts: {}; {}",
                           to_string(elsewhere), cause, components()))
      .at(kPlace)
      .legal(fmt::format("\"{} B\" or more with these hosts, so that each part lies on its device's host",
                         enough.value))
      .fix(
          "raise supernode.pool to that, take a host file that puts devices which need little of the pool "
          "beside those that need much, or set OMPI_MCA_osc=^ucx, with which Open MPI 4.1 has such windows");
}

Bytes all_elsewhere(const PoolPlacement& placement) {
  Bytes sum{};
  for (std::size_t d = 0; d < placement.parts.size(); ++d) sum += placement.elsewhere(static_cast<int>(d));
  return sum;
}

// Each device writes to its bytes on other hosts and reads them back. The barrier ensures that nobody
// computes before all have succeeded.
void connect(const MpiHosts& hosts, std::span<Arena> segments, const PoolPlacement& placement,
             const std::atomic<bool>* cancel, std::span<MpiPool> pools) {
  const auto loans = std::make_shared<MpiLoans>(hosts, segments);
  for (std::size_t d = 0; d < pools.size(); ++d) {
    pools[d].remote = std::make_unique<RemoteMemory>(std::make_unique<MpiOneSided>(loans), cancel);
    const auto device = static_cast<std::size_t>(segments[d].rank());
    for (const PoolExtent& e : placement.parts[device])
      if (e.rank != segments[d].rank()) pools[d].remote->try_out(e.rank, e.offset, e.bytes, kTrial);
  }
  MPI_Barrier(hosts.world());
}

}  // namespace

void require_pool_room(Bytes parts, int devices, int processes, Bytes taken, Bytes available) try {
  SharedNeed need = arenas_need(Bytes(0), devices, processes);
  need = window_need(need.segments + parts, processes);
  require_shared_memory(need, available - taken);
} catch (const Error& e) {
  throw of_the_pool(e);
}

std::vector<MpiPool> make_mpi_pools(const MpiHosts& hosts, Bytes budget, std::span<const Bytes> parts,
                                    const std::atomic<bool>* cancel) {
  const PoolPlacement placement = place_pool(hosts.topology(), budget, parts);
  const DeviceBlock own = hosts.devices();
  std::vector<Arena> segments = make_segments(
      hosts, std::span(placement.segments)
                 .subspan(static_cast<std::size_t>(own.first), static_cast<std::size_t>(own.count)));
  std::vector<MpiPool> pools(segments.size());
  if (!placement.spills()) {
    for (std::size_t d = 0; d < pools.size(); ++d)
      pools[d].part = std::make_unique<PoolBacking>(std::move(segments[d]));
    return pools;
  }
  try {
    connect(hosts, segments, placement, cancel, pools);
  } catch (const Error& e) {
    if (e.code() != Code::kMpi) throw;
    throw no_way(hosts, parts, all_elsewhere(placement), e.cause());
  }
  for (std::size_t d = 0; d < pools.size(); ++d) {
    const auto device = static_cast<std::size_t>(segments[d].rank());
    pools[d].part =
        std::make_unique<SpreadPool>(std::move(segments[d]), placement.parts[device], *pools[d].remote);
  }
  return pools;
}

}  // namespace hyperrun

// A World over MPI: set-up only. From then on MPI carries messages between hosts and nothing else.
#include <cstring>
#include <utility>

#include "collectives/mpi_port.h"
#include "collectives/world.h"
#include "memory/shared_window.h"
#include "runtime/base/error.h"

namespace hyperrun {

std::unique_ptr<World> make_mpi_world(const MpiHosts& hosts, Arena& arena, const WorldOptions& options) {
  const int local = static_cast<int>(hosts.local_ranks().size());
  auto window = std::make_shared<SharedWindow>(hosts, Bytes(ControlBlock::bytes(options.max_keys, local)),
                                               Bytes(static_cast<std::int64_t>(kLine)));
  Transport t{
      .topology = hosts.topology(), .arena = &arena, .blocks = {}, .port = nullptr, .keep_alive = window};
  for (int l = 0; l < local; ++l) t.blocks.emplace_back(window->base(l), options.max_keys, local);
  t.blocks[static_cast<std::size_t>(hosts.local_index())].initialise();
  MPI_Barrier(hosts.host());  // no peer looks before this
  if (hosts.topology().hosts() > 1) t.port = std::make_unique<MpiPort>(hosts.world());
  return std::make_unique<World>(std::move(t), options);
}

}  // namespace hyperrun

// Worlds over MPI: set-up only. From then on MPI carries messages between hosts and nothing else.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "collectives/mpi_port.h"
#include "collectives/world.h"
#include "memory/shared_window.h"
#include "runtime/base/error.h"

namespace hyperrun {

std::vector<std::unique_ptr<World>> make_mpi_worlds(const MpiHosts& hosts, std::span<Arena> arenas,
                                                    std::span<const WorldOptions> options) {
  HR_CHECK(arenas.size() == options.size() && std::ssize(arenas) == hosts.devices().count);
  const std::vector<int>& local = hosts.local_devices();
  const int keys = options.front().max_keys, peers = static_cast<int>(local.size());
  const std::vector<Bytes> each(arenas.size(),
                                Bytes(ControlBlock::bytes(keys, peers, options.front().checksums)));
  const auto window = std::make_shared<SharedWindow>(hosts, each, Bytes(static_cast<std::int64_t>(kLine)));
  std::vector<std::int64_t> owners;  // by device of this host: the device at whose bell it waits
  for (const std::size_t owner : owners_of_bells(options))
    owners.push_back(hosts.devices().first + static_cast<std::int64_t>(owner));
  owners = hosts.gather_on_host(owners);
  std::shared_ptr<MpiMessages> messages;
  if (hosts.topology().hosts() > 1) messages = std::make_shared<MpiMessages>(hosts);
  std::vector<std::unique_ptr<World>> worlds;
  for (std::size_t d = 0; d < arenas.size(); ++d) {
    Transport t{.topology = hosts.topology(), .arena = &arenas[d], .keep_alive = window};
    for (std::size_t l = 0; l < local.size(); ++l) t.blocks.emplace_back(window->base(l), keys, peers);
    for (const std::int64_t owner : owners) {
      const auto place = std::ranges::lower_bound(local, owner) - local.begin();
      t.bells.push_back(&t.blocks[static_cast<std::size_t>(place)].bell());
    }
    if (messages) t.port = std::make_unique<MpiPort>(messages, arenas[d].rank());
    worlds.push_back(std::make_unique<World>(std::move(t), options[d]));
  }
  return worlds;
}

std::unique_ptr<World> make_mpi_world(const MpiHosts& hosts, Arena& arena, const WorldOptions& options) {
  return std::move(make_mpi_worlds(hosts, {&arena, 1}, {&options, 1}).front());
}

}  // namespace hyperrun

#include "runtime/rank/local_devices.h"

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <variant>

#include "memory/mpi_one_sided.h"
#include "runtime/base/error.h"
#include "runtime/device/kernels/thread.h"
#include "runtime/device/plan_world.h"
#include "runtime/rank/mpi_start.h"
#include "runtime/rank/room.h"
#include "runtime/rank/sessions.h"
#include "runtime/rank/token_file.h"

namespace hyperrun {
namespace {

constexpr std::chrono::seconds kTrialTimeout{20};  // a host that answers a test read at all does so by then

}  // namespace

void LocalDevices::serve(const std::function<void(int device)>& failed) {
  SharedSessions shared{sessions_, {}};
  try {
    load();
    if (sessions_.empty()) return;
    start();
    for (const Session& s : sessions_)  // collective: all processes share the tokens of every session
      shared.tokens.push_back(std::make_shared<const std::vector<std::int32_t>>(
          s.tokens.empty() ? std::vector<std::int32_t>() : shared_tokens(s)));
  } catch (...) {
    failed(-1);
    return;
  }
  const int first = link_.devices().first;
  std::vector<World*> worlds;
  for (const auto& world : worlds_) worlds.push_back(world.get());
  link_.set_wake([&](int device) { worlds[static_cast<std::size_t>(device - first)]->wake(); });
  // A device that fails ends the process, so nobody is left to be told.
  const auto device = [&](int d) {
    try {
      serve_device(first + d, shared);
    } catch (...) {
      failed(first + d);
    }
  };
  crew_->run(worlds, device, [] {});
  link_.set_wake({});
}

// Waits for the plans. A run that ends before it has begun brings none.
void LocalDevices::load() {
  const tasks::Command command = link_.next(link_.devices().first);
  if (const auto* load = std::get_if<tasks::LoadProgram>(&command))
    sessions_ = sessions_from_bytes(load->content, "session");
}

void LocalDevices::start() {
  kernels::use_calling_thread_only();
  hosts_ = std::make_unique<MpiHosts>(MPI_COMM_WORLD, false, link_.devices_of_run());
  // One process speaks for its host, before any of them has taken memory.
  if (hosts_->devices().first == hosts_->local_devices().front())
    require_memory(sessions_, hosts_->local_devices(), hosts_->local_processes());
  MPI_Barrier(hosts_->host());
  arenas_ = make_shared_arenas(*hosts_, touched_hbm(sessions_));
  start_tiers();
  reach_peers();
  start_worlds();
}

// Makes each device's part of the pool and its file on flash, exactly as large as planned.
void LocalDevices::start_tiers() {
  const Session& first = sessions_.front();
  if (const std::vector<Bytes> parts = pool_parts(); std::ranges::max(parts).value > 0)
    pools_ = make_mpi_pools(*hosts_, first.job.supernode.pool, parts, &cancel_);
  for (const Arena& arena : arenas_) {
    const Bytes flash = peak_of_rank(sessions_, arena.rank(), Tier::kFlash);
    flash_.push_back(flash.value > 0 ? std::make_unique<FlashBacking>(first.run_directory, flash) : nullptr);
  }
}

// Opens a window to the HBM of other hosts if any device fetches from there; making a window is collective.
// Reads once from each peer, so that a missing capability is found before anything is computed.
void LocalDevices::reach_peers() {
  const std::set<std::pair<int, int>> fetches = fetches_between_hosts(sessions_, hosts_->topology());
  if (fetches.empty()) return;
  try {
    const auto loans = std::make_shared<MpiLoans>(*hosts_, arenas_);
    for (const Arena& arena : arenas_) {
      peers_.push_back(std::make_unique<RemoteMemory>(std::make_unique<MpiOneSided>(loans), &cancel_));
      for (const auto& [to, from] : fetches)
        if (to == arena.rank()) peers_.back()->try_reading(from, kTrialTimeout);
    }
  } catch (const Error& e) {
    if (e.code() != Code::kMpi) throw;
    throw Error(
        Code::kMpi,
        "programs fetch from each other's HBM, and MPI gives no access to that of other hosts: " + e.cause())
        .at(fmt::format("rank {}", hosts_->rank()))
        .legal("all devices on one host, or an Open MPI with windows between hosts")
        .fix("leave --hostfile out, or set OMPI_MCA_osc=^ucx, with which Open MPI 4.1 has such windows");
  }
  MPI_Barrier(hosts_->world());
}

std::vector<RemoteMemory*> LocalDevices::remotes(std::size_t device) const {
  std::vector<RemoteMemory*> list;
  if (!pools_.empty() && pools_[device].remote) list.push_back(pools_[device].remote.get());
  if (!peers_.empty()) list.push_back(peers_[device].get());
  return list;
}

std::vector<Bytes> LocalDevices::pool_parts() const {
  std::vector<Bytes> parts;
  for (int device = 0; device < hosts_->topology().size(); ++device)
    parts.push_back(peak_of_rank(sessions_, device, Tier::kPool));
  return parts;
}

// A thread a stream is needed by the paced clock, which sleeps, and by memory on other hosts, whose owner is
// one of them. Other devices share the threads.
void LocalDevices::start_worlds() {
  const Job& job = sessions_.front().job;
  thread_per_stream_ =
      job.run.clock == kPaced || !remotes(0).empty() || threads_pay(job.run.streams, *hosts_);
  const int count = hosts_->devices().count;
  crew_ = std::make_unique<DeviceCrew>(
      count, thread_per_stream_ ? count : threads_of_crew(count, hosts_->local_processes()));
  std::vector<WorldOptions> options(arenas_.size());
  for (std::size_t d = 0; d < options.size(); ++d) {
    options[d] = {.cancel = &cancel_, .sharer = crew_->sharer(static_cast<int>(d)), .remotes = remotes(d)};
    options[d].checksums = job.run.integrity.checksums;
    options[d].max_keys = 0;
    for (const Session& s : sessions_) options[d].max_keys += keys_of(s.plan);
  }
  worlds_ = make_mpi_worlds(*hosts_, arenas_, options);
}

// Rank 0 reads the file and broadcasts it; other hosts need not see it.
std::vector<std::int32_t> LocalDevices::shared_tokens(const Session& session) const {
  std::vector<std::int32_t> tokens;
  if (hosts_->rank() == 0) tokens = read_tokens(session.tokens);
  std::int64_t n = std::ssize(tokens);
  MPI_Bcast(&n, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  tokens.resize(static_cast<std::size_t>(n));
  constexpr std::int64_t kAtOnce = 1 << 28;  // MPI counts with an int
  for (std::int64_t at = 0; at < n; at += kAtOnce)
    MPI_Bcast(tokens.data() + at, static_cast<int>(std::min(kAtOnce, n - at)), MPI_INT32_T, 0,
              MPI_COMM_WORLD);
  return tokens;
}

// One device of a process is enough to serve other hosts.
void LocalDevices::serve_device(int number, const SharedSessions& shared) {
  const auto d = static_cast<std::size_t>(number - link_.devices().first);
  const DeviceMemory memory(arenas_[d], pools_.empty() ? nullptr : pools_[d].part.get(), flash_[d].get(),
                            peers_.empty() ? nullptr : peers_[d].get());
  const RemoteMemory::Owners owners(remotes(d));
  Device device({.number = number,
                 .link = link_,
                 .progress = progress_[d],
                 .memory = memory,
                 .world = *worlds_[d],
                 .sharer = crew_->sharer(static_cast<int>(d)),
                 .thread_per_stream = thread_per_stream_,
                 .serves_other_hosts = d == 0 && !remotes(d).empty()},
                shared);
  device.serve();
}

}  // namespace hyperrun

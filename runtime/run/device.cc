#include "runtime/run/device.h"

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
#include "runtime/run/mpi_start.h"
#include "runtime/run/protocol.h"
#include "runtime/run/sessions.h"
#include "runtime/run/text_data.h"

namespace hyperrun {
namespace {

constexpr std::chrono::seconds kTrialTimeout{20};  // a host that answers a test read at all does so by then
constexpr std::chrono::microseconds kServeInterval{100};  // how often a waiting device serves other hosts

}  // namespace

void Device::serve() {
  for (;;) {
    const tasks::Command command = next_command();
    if (std::holds_alternative<tasks::Shutdown>(command)) return;
    if (const auto* load = std::get_if<tasks::LoadProgram>(&command)) {
      sessions_ = sessions_from_bytes(load->content, "session");
      start();
    } else {
      invoke(std::get<tasks::Invocation>(command));
    }
  }
}

// While it waits for a command, the device keeps MPI progressing: other hosts may access its memory.
tasks::Command Device::next_command() {
  if (remotes().empty()) return link_.next();
  for (;;) {
    if (std::optional<tasks::Command> command = link_.next_within(kServeInterval)) return *std::move(command);
    world_->progress();
  }
}

void Device::start() {
  const Job& job = sessions_.front().job;
  kernels::use_calling_thread_only();
  hosts_ = std::make_unique<MpiHosts>(MPI_COMM_WORLD);
  arena_.emplace(make_shared_arena(*hosts_, job.supernode.hbm, touched_hbm(sessions_)));
  start_tiers();
  reach_peers();
  WorldOptions options{.cancel = &cancel_, .remotes = remotes()};
  options.max_keys = 0;
  for (const Session& s : sessions_) options.max_keys += keys_of(s.plan);
  world_ = make_mpi_world(*hosts_, *arena_, options);
  start_plans(job.run.clock == kPaced || !options.remotes.empty() || threads_pay(job.run.streams, *hosts_));
}

// Makes this device's part of the pool and its file on flash, exactly as large as planned.
void Device::start_tiers() {
  const Session& first = sessions_.front();
  if (const std::vector<Bytes> parts = pool_parts(); std::ranges::max(parts).value > 0)
    pool_ = make_mpi_pool(*hosts_, first.job.supernode.pool, parts, &cancel_);
  if (const Bytes flash = peak_of_rank(sessions_, hosts_->rank(), Tier::kFlash); flash.value > 0)
    flash_ = std::make_unique<FlashBacking>(first.run_directory, flash);
}

// Opens a window to the HBM of other hosts if any rank fetches from there; making a window is collective.
// Reads once from each peer, so that a missing capability is found before anything is computed.
void Device::reach_peers() {
  const std::set<std::pair<int, int>> fetches = fetches_between_hosts(sessions_, hosts_->topology());
  if (fetches.empty()) return;
  try {
    peers_ = std::make_unique<RemoteMemory>(std::make_unique<MpiOneSided>(*hosts_, *arena_), &cancel_);
    for (const auto& [to, from] : fetches)
      if (to == hosts_->rank()) peers_->try_reading(from, kTrialTimeout);
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

std::vector<RemoteMemory*> Device::remotes() const {
  std::vector<RemoteMemory*> list;
  if (pool_ && pool_->remote) list.push_back(pool_->remote.get());
  if (peers_) list.push_back(peers_.get());
  return list;
}

std::vector<Bytes> Device::pool_parts() const {
  std::vector<Bytes> parts;
  for (int rank = 0; rank < hosts_->topology().size(); ++rank)
    parts.push_back(peak_of_rank(sessions_, rank, Tier::kPool));
  return parts;
}

void Device::start_plans(bool threads) {
  const PlanDevice::SharedParts shared{
      {*arena_, pool_ ? pool_->part.get() : nullptr, flash_.get(), peers_.get()},
      *world_,
      status_,
      progress_,
      threads};
  int first_key = 0;
  for (const Session& s : sessions_) {
    std::vector<std::int32_t> tokens;
    if (!s.tokens.empty()) tokens = shared_tokens(s);  // collective: all ranks call it
    const bool mine = device_of(s, hosts_->rank()) >= 0;
    plans_.push_back(mine ? std::make_unique<PlanDevice>(s, std::move(tokens), first_key, shared) : nullptr);
    first_key += keys_of(s.plan);
  }
}

// Rank 0 reads the file and broadcasts it; other hosts need not see it.
std::vector<std::int32_t> Device::shared_tokens(const Session& session) const {
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

void Device::invoke(const tasks::Invocation& invocation) {
  status_.last_instruction = -1;
  status_.invocation = invocation.id;
  const auto session = static_cast<std::size_t>(invocation.program / kProgramsOfASession);
  HR_CHECK(session < plans_.size() && plans_[session] != nullptr, "an invocation of another device");
  tasks::InvocationDone done = plans_[session]->run(invocation.program % kProgramsOfASession, invocation);
  done.id = invocation.id;
  link_.report(std::move(done));
}

}  // namespace hyperrun

#include "launcher/device.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "launcher/mpi_start.h"
#include "launcher/protocol.h"
#include "launcher/sessions.h"
#include "launcher/text_data.h"
#include "runtime/base/error.h"
#include "runtime/device/kernels/thread.h"
#include "runtime/device/plan_world.h"

namespace hyperrun {
namespace {

constexpr std::chrono::microseconds kServing{100};  // how often a device that waits looks after other hosts

}  // namespace

void Device::serve() {
  for (;;) {
    const control::Command command = next_command();
    if (std::holds_alternative<control::Shutdown>(command)) return;
    if (const auto* load = std::get_if<control::LoadProgram>(&command)) {
      sessions_ = sessions_from_bytes(load->content, "session");
      start();
    } else {
      invoke(std::get<control::Invocation>(command));
    }
  }
}

// This rank's share of the pool serves other hosts also while it has nothing to do.
control::Command Device::next_command() {
  if (!pool_ || !pool_->remote) return link_.next();
  for (;;) {
    if (std::optional<control::Command> command = link_.next_within(kServing)) return *std::move(command);
    world_->progress();
  }
}

void Device::start() {
  const Job& job = sessions_.front().job;
  kernels::use_calling_thread_only();
  hosts_ = std::make_unique<MpiHosts>(MPI_COMM_WORLD);
  arena_.emplace(make_shared_arena(*hosts_, job.supernode.hbm, touched_hbm(sessions_)));
  start_tiers();
  WorldOptions options{.cancel = &cancel_, .remote = pool_ ? pool_->remote.get() : nullptr};
  options.max_keys = 0;
  for (const Session& s : sessions_) options.max_keys += keys_of(s.plan);
  world_ = make_mpi_world(*hosts_, *arena_, options);
  start_plans(job.run.clock == kPaced || options.remote != nullptr || threads_pay(job.run.streams, *hosts_));
}

// This device's part of the pool, and its file: as much as is planned, and no more.
void Device::start_tiers() {
  const Session& first = sessions_.front();
  if (const std::vector<Bytes> parts = pool_parts(); std::ranges::max(parts).value > 0)
    pool_ = make_mpi_pool(*hosts_, first.job.supernode.pool, parts, &cancel_);
  if (const Bytes flash = peak_of_rank(sessions_, hosts_->rank(), Tier::kFlash); flash.value > 0)
    flash_ = std::make_unique<FlashBacking>(first.run_directory, flash);
}

std::vector<Bytes> Device::pool_parts() const {
  std::vector<Bytes> parts;
  for (int rank = 0; rank < hosts_->topology().size(); ++rank)
    parts.push_back(peak_of_rank(sessions_, rank, Tier::kPool));
  return parts;
}

void Device::start_plans(bool threads) {
  const PlanDevice::Surroundings around{
      {*arena_, pool_ ? pool_->part.get() : nullptr, flash_.get()}, *world_, status_, whereabouts_, threads};
  int first_key = 0;
  for (const Session& s : sessions_) {
    std::vector<std::int32_t> tokens;
    if (!s.tokens.empty()) tokens = shared_tokens(s);  // by all ranks together
    const bool mine = device_of(s, hosts_->rank()) >= 0;
    plans_.push_back(mine ? std::make_unique<PlanDevice>(s, std::move(tokens), first_key, around) : nullptr);
    first_key += keys_of(s.plan);
  }
}

// Only rank 0 needs to see the file.
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

void Device::invoke(const control::Invocation& invocation) {
  status_.last_instruction = -1;
  status_.invocation = invocation.id;
  const auto session = static_cast<std::size_t>(invocation.program / kProgramsOfASession);
  HR_CHECK(session < plans_.size() && plans_[session] != nullptr, "an invocation of another device");
  control::InvocationDone done = plans_[session]->run(invocation.program % kProgramsOfASession, invocation);
  done.id = invocation.id;
  link_.report(std::move(done));
}

}  // namespace hyperrun

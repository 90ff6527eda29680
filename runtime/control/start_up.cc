#include "runtime/control/start_up.h"

#include <algorithm>

namespace hyperrun::control {
namespace {

constexpr std::chrono::milliseconds kTick{100};

}  // namespace

StartUp::StartUp(asio::io_context& io, Membership& members, Watch& watch, std::string address)
    : members_(members), watch_(watch), address_(std::move(address)), tick_(io) {}

void StartUp::begin(Limit limit) {
  limit_ = std::move(limit);
  deadline_ = Clock::now() + limit_.time;
  tick();
}

void StartUp::end() { tick_.cancel(); }

void StartUp::kill_absent() {
  const std::vector<std::int32_t> absent = members_.absent();
  if (absent.empty()) return;
  ranks_.look();
  for (const std::int32_t rank : absent)
    if (const auto process = ranks_.all().find(rank);
        process != ranks_.all().end() && process->second.state != process::LocalRank::State::kEnded)
      process::ProcessHandle(process->second.pid).kill();
}

void StartUp::tick() {
  ranks_.look();
  find_dead();
  if (const std::optional<Error> stopped = stopped_too_long()) return limit_.over(*stopped);
  if (Clock::now() >= deadline_) return limit_.over(overdue());
  tick_.expires_at(std::min(deadline_, Clock::now() + kTick));
  tick_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) tick();
  });
}

// Finds ranks that died before they joined; the end of their connection tells of the others. mpirun that has
// lost one ends the rest, so later findings are no cause.
void StartUp::find_dead() {
  const bool cause = !any_dead_;
  for (const std::int32_t rank : members_.absent()) {
    const auto process = ranks_.all().find(rank);
    if (process == ranks_.all().end() || process->second.state != process::LocalRank::State::kEnded) continue;
    if (members_.at(rank).failed) continue;
    introduce(rank, process->second);
    members_.at(rank).failed = true;
    any_dead_ = true;
    if (cause)
      watch_.note({Symptom::kNeverJoined,
                   members_.at(rank).devices.first,
                   "its process ended before it joined",
                   {},
                   0,
                   true});
  }
}

// A rank that a signal has stopped holds up all others in the start of MPI, and says nothing of it.
std::optional<Error> StartUp::stopped_too_long() {
  for (const auto& [rank, process] : ranks_.all()) {
    if (process.state != process::LocalRank::State::kStopped) {
      stopped_since_.erase(rank);
      continue;
    }
    const auto since = stopped_since_.try_emplace(rank, Clock::now()).first->second;
    if (Clock::now() - since < limit_.stopped) continue;
    if (members_.at(rank).info().rank < 0) introduce(rank, process);  // it has not said who it is
    members_.at(rank).hung = true;
    return Error(Code::kDeviceHung,
                 "hung: stopped by a signal for " + to_text(limit_.stopped) + " while it starts")
        .at(name_of_process(members_.at(rank).info()))
        .fix("start the job again, and see who sends SIGSTOP");
  }
  return std::nullopt;
}

void StartUp::introduce(std::int32_t rank, const process::LocalRank& process) {
  Member& member = members_.at(rank);
  member.introduce({rank, process::host_name(), process::machine_id(), process.pid, ""});
  member.process = process::ProcessHandle(process.pid);
}

Error StartUp::overdue() {
  if (const auto absent = members_.absent(); !absent.empty()) return overdue_join(absent);
  std::vector<std::string> late;
  for (const Member& m : members_.all())
    if (!m.ready) late.push_back(name_of_process(m.info()));
  return Error(Code::kMpi, "MPI did not start within " + limit() + " on " + listing(late))
      .fix("see what they say; can their hosts reach each other? docs/hosts.md lists what MPI needs");
}

// Names the ranks that have not joined in time. A stopped rank holds up others that wait for it in MPI: then
// it alone is to blame.
Error StartUp::overdue_join(const std::vector<std::int32_t>& absent) {
  std::vector<std::string> stopped, all;
  for (const std::int32_t rank : absent) {
    const tasks::DeviceInfo& known = members_.at(rank).info();  // of one that has said who it is
    all.push_back(known.rank >= 0 ? name_of_process(known) : name_of(members_.at(rank).devices));
    const auto process = ranks_.all().find(rank);
    if (process == ranks_.all().end()) continue;
    introduce(rank, process->second);
    all.back() = name_of_process(members_.at(rank).info());
    if (process->second.state != process::LocalRank::State::kStopped) continue;
    members_.at(rank).hung = true;
    stopped.push_back(all.back());
  }
  if (!stopped.empty())
    return Error(Code::kDeviceHung,
                 "hung: stopped by a signal, not joined within " + limit() + " of the start")
        .at(listing(stopped))
        .fix("start the job again, and see who sends SIGSTOP");
  return Error(Code::kDeviceHung, "hung: not joined within " + limit() + " of the start")
      .at(listing(all))
      .fix("see what " +
           std::string(all.size() == 1 ? "it says; can its host" : "they say; can their hosts") + " reach " +
           address_ + "?");
}

std::string StartUp::limit() const { return to_text(limit_.time); }

}  // namespace hyperrun::control

#include "runtime/control/watch.h"

#include <algorithm>

namespace hyperrun::control {

using ErrorCode = boost::system::error_code;
using std::chrono::milliseconds;

namespace {

// mpirun gives its ranks a second to end, then ends itself. Devices that it stops wait longer for a verdict.
constexpr milliseconds kLaunchersEnd{1800};

}  // namespace

Watch::Watch(asio::io_context& io, Membership& members, Limits limits, Verdict verdict)
    : members_(members),
      limits_(limits),
      verdict_(std::move(verdict)),
      tick_(io),
      decision_(io),
      period_(std::clamp<Clock::duration>(limits.heartbeat / 8, milliseconds(5), milliseconds(250))) {}

void Watch::start() {
  last_tick_ = Clock::now();
  tick();
}

void Watch::stop() {
  stopped_ = true;
  tick_.cancel();
  decision_.cancel();
}

void Watch::set_working(bool working) {
  working_ = working;
  progressed_ = Clock::now();
}

void Watch::tick() {
  if (stopped_) return;
  const Clock::time_point now = Clock::now();
  // The controller itself was kept from listening (a slow driver, ctrl-Z): nobody is to blame.
  if (const Clock::duration late = now - last_tick_ - period_; late > period_) {
    members_.forgive(late);
    progressed_ += late;
  }
  last_tick_ = now;
  show_life(now);
  find_hung(now);
  find_stall(now);
  tick_.expires_after(period_);
  tick_.async_wait([this](const ErrorCode& cancelled) {
    if (!cancelled) tick();
  });
}

// Sends a sign of life: devices give up a silent controller (DeviceLinkOptions::silence).
void Watch::show_life(Clock::time_point now) {
  if (now - last_alive_ < limits_.heartbeat) return;
  last_alive_ = now;
  pb::Message m;
  m.mutable_alive();
  for (const Member& member : members_.all())
    if (member.present()) member.connection->send(m);
}

void Watch::find_hung(Clock::time_point now) {
  for (Member& m : members_.all()) {
    if (!m.present() || !m.answered || m.failed || m.hung || m.goodbye || now - m.heard <= limits_.heartbeat)
      continue;
    m.hung = true;
    note({Symptom::kHung, m.devices.first, "no heartbeat for " + to_text(limits_.heartbeat), {}, 0, true});
  }
}

// Finds a stall. All devices live and none makes progress: the one furthest behind, among those with work,
// holds up the others.
void Watch::find_stall(Clock::time_point now) {
  if (limits_.stall == Clock::duration::zero() || !working_ || diagnosis_.any()) return;
  if (now - progressed_ <= limits_.stall) return;
  const std::vector<DeviceState> all = states();
  const auto last = std::ranges::min_element(
      all, {}, [](const DeviceState& d) { return std::pair(d.work.invocation, d.position); });
  const std::int32_t rank = last->info.rank;
  members_.of_device(rank).hung = true;
  note({Symptom::kHung,
        rank,
        "no device finished an instruction for " + to_text(limits_.stall) + ", and it is furthest behind",
        {}});
}

void Watch::on_report(Member& member, std::int32_t device, std::int64_t invocation) {
  progressed_ = member.heard;
  member.state(device).position = {invocation, Position::kAll};
  member.state(device).place.clear();
}

void Watch::on_heartbeat(Member& member, pb::Heartbeat&& beat) {
  const std::size_t known = std::min(member.states.size(), static_cast<std::size_t>(beat.positions_size()));
  for (std::size_t d = 0; d < known; ++d) {
    DeviceState& state = member.states[d];
    pb::Position& told = *beat.mutable_positions(static_cast<int>(d));
    state.place = std::move(*told.mutable_place());
    const Position position{told.invocation(), told.last_instruction()};
    if (position <= state.position) continue;  // no news, or older than its last report
    progressed_ = member.heard;
    state.position = position;
  }
}

void Watch::note(FailureReport report) {
  if (stopped_) return;
  const bool first = !diagnosis_.any();
  if (first) first_noted_ = Clock::now();
  diagnosis_.add(std::move(report));
  if (first) ask_positions();
  if (first || Clock::now() + diagnosis_.settle() < decision_.expiry())
    schedule_decision(diagnosis_.settle());
}

// Asks for present positions, so that the report does not tell those of the last heartbeat.
void Watch::ask_positions() {
  pb::Message m;
  m.mutable_where();
  for (const Member& member : members_.all())
    if (member.present()) member.connection->send(m);
}

void Watch::schedule_decision(Clock::duration time) {
  decision_.expires_after(time);
  decision_.async_wait([this](const ErrorCode& cancelled) {
    if (!cancelled) decide();
  });
}

// Decides, unless it must wait. If a device only feels another's end, and a third has missed a heartbeat,
// wait until that one is heard again or is surely hung. While ranks start, mpirun may be ending all because
// it has lost one that had not joined: its own end tells how that one ended.
void Watch::decide() {
  if (stopped_) return;
  const Clock::time_point now = Clock::now();
  const FailureReport& root = diagnosis_.root();
  const bool starting = !members_.all_ready() && now - first_noted_ < kLaunchersEnd;
  const bool silent = members_.anybody_silent(now - limits_.heartbeat * 35 / 100);
  if ((root.symptom >= Symptom::kNeverJoined && starting) || (root.symptom >= Symptom::kStopped && silent))
    return schedule_decision(milliseconds(50));
  if (root.symptom == Symptom::kStopped) return verdict_.interrupted(root.signal);
  verdict_.failed(explain(diagnosis_, states()));
}

std::vector<DeviceState> Watch::states() const {
  std::vector<DeviceState> states = members_.states();
  for (DeviceState& state : states)
    if (state.info.rank >= 0) state.work = verdict_.work(state.info.rank);
  return states;
}

}  // namespace hyperrun::control

#include "runtime/control/membership.h"

#include <algorithm>

namespace hyperrun::control {

void Member::introduce(const tasks::DeviceInfo& info) {
  for (std::int32_t d = devices.first; d < devices.end(); ++d) {
    state(d).info = info;
    state(d).info.rank = d;
    state(d).info.process = devices;
  }
}

void Member::forget() {
  Member fresh;
  fresh.devices = devices;
  fresh.states.resize(states.size());
  *this = std::move(fresh);
}

Membership::Membership(std::int32_t devices, std::int32_t ranks)
    : devices_(devices), members_(static_cast<std::size_t>(ranks)) {
  for (std::int32_t r = 0; r < ranks; ++r) {
    at(r).devices = block_of(r, ranks, devices);
    at(r).states.resize(static_cast<std::size_t>(at(r).devices.count));
  }
}

Member& Membership::join(const tasks::DeviceInfo& info, std::shared_ptr<Connection> connection) {
  Member& member = at(info.rank);
  if (member.connection) member.connection->close();
  member.forget();
  member.connection = std::move(connection);
  member.heard = Clock::now();
  if (info.machine == process::machine_id()) member.process = process::ProcessHandle(info.pid);
  member.introduce(info);
  return member;
}

bool Membership::all_joined() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.joined(); });
}

bool Membership::all_ready() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.ready; });
}

bool Membership::all_gone() const {
  return std::none_of(members_.begin(), members_.end(), [](const Member& m) { return m.present(); });
}

std::vector<std::int32_t> Membership::absent() const {
  std::vector<std::int32_t> ranks;
  for (std::size_t r = 0; r < members_.size(); ++r)
    if (!members_[r].joined()) ranks.push_back(static_cast<std::int32_t>(r));
  return ranks;
}

std::vector<tasks::DeviceInfo> Membership::infos() const {
  std::vector<tasks::DeviceInfo> infos;
  for (const Member& m : members_)
    if (m.connection != nullptr)
      for (const DeviceState& state : m.states) infos.push_back(state.info);
  return infos;
}

std::vector<DeviceState> Membership::states() const {
  std::vector<DeviceState> states;
  for (const Member& m : members_) states.insert(states.end(), m.states.begin(), m.states.end());
  return states;
}

void Membership::broadcast(std::string_view frame) {
  for (Member& m : members_)
    if (m.present()) m.connection->send_frame(frame);
}

bool Membership::anybody_silent(Clock::time_point since) const {
  return std::any_of(members_.begin(), members_.end(), [since](const Member& m) {
    return m.present() && m.answered && !m.failed && m.heard < since;
  });
}

void Membership::forgive(Clock::duration time) {
  for (Member& m : members_) m.heard += time;
}

void Membership::kill_hung() {
  for (Member& hung : members_) {
    if (!hung.hung || hung.gone) continue;
    hung.process.kill();
    const auto neighbour = std::find_if(members_.begin(), members_.end(), [&](const Member& m) {
      return m.present() && !m.hung && m.info().machine == hung.info().machine;
    });
    if (neighbour == members_.end()) continue;
    pb::Message m;
    m.mutable_kill_pid()->set_pid(hung.info().pid);
    neighbour->connection->send(m);
  }
}

void Membership::kill_local() {
  for (const Member& m : members_) m.process.kill();
}

}  // namespace hyperrun::control

#include "runtime/rank/sessions.h"

#include <algorithm>
#include <variant>

namespace hyperrun {

int device_of(const Session& session, int rank) {
  if (session.ranks.empty()) return rank;
  const auto found = std::ranges::find(session.ranks, rank);
  return found == session.ranks.end() ? -1 : static_cast<int>(found - session.ranks.begin());
}

Bytes peak_of_rank(std::span<const Session> sessions, int rank, Tier tier) {
  Bytes most{};
  for (const Session& s : sessions)
    if (const int d = device_of(s, rank); d >= 0) most = std::max(most, s.plan.of_device(d).peak(tier));
  return most;
}

Bytes touched_hbm(std::span<const Session> sessions) {
  Bytes most{};
  for (const Session& s : sessions) most = std::max(most, s.plan.peak());
  return most;
}

std::set<std::pair<int, int>> fetches_between_hosts(std::span<const Session> sessions,
                                                    const Topology& topology) {
  const auto host = [&](int rank) { return topology.host_of[static_cast<std::size_t>(rank)]; };
  std::set<std::pair<int, int>> pairs;
  const auto look_at = [&](const Instr& instr) {
    const auto* fetch = std::get_if<instr::Fetch>(&instr.op);
    if (fetch != nullptr && host(fetch->to_rank) != host(fetch->from_rank))
      pairs.emplace(fetch->to_rank, fetch->from_rank);
  };
  for (const Session& session : sessions)
    for (const Role& role : session.plan.roles)
      for (const Program& program : role.programs) std::ranges::for_each(program.instrs, look_at);
  return pairs;
}

}  // namespace hyperrun

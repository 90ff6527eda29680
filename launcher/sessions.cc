#include "launcher/sessions.h"

#include <algorithm>

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

}  // namespace hyperrun

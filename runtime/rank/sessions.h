// The ranks of sessions, and the memory that all sessions together need on each rank.
#pragma once

#include <set>
#include <span>
#include <utility>

#include "memory/host.h"
#include "runtime/base/units.h"
#include "runtime/ir/program.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// The rank's device number in the session's plan; -1 if it has no part in it.
int device_of(const Session& session, int rank);

// The bytes of a tier that all plans together need on one rank. Colocated plans already have disjoint
// offsets.
Bytes peak_of_rank(std::span<const Session> sessions, int rank, Tier tier);

// The HBM that each rank touches before the run begins: the peak of the fullest device of all plans.
Bytes touched_hbm(std::span<const Session> sessions);

// The pairs (to, from) of ranks where `to` fetches from the HBM of `from` on another host.
std::set<std::pair<int, int>> fetches_between_hosts(std::span<const Session> sessions,
                                                    const Topology& topology);

}  // namespace hyperrun

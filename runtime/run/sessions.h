// What the sessions of a job take of its ranks.
#pragma once

#include <set>
#include <span>
#include <utility>

#include "memory/host.h"
#include "runtime/base/units.h"
#include "runtime/ir/program.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// The device of its plan that a rank is; -1: none.
int device_of(const Session& session, int rank);

// Bytes of a tier that the plans take of one rank: they lie beside each other there.
Bytes peak_of_rank(std::span<const Session> sessions, int rank, Tier tier);

// HBM that each rank has touched before it begins: as much as the fullest device of all plans needs.
Bytes touched_hbm(std::span<const Session> sessions);

// Who fetches from whose HBM on another host, ranks of the job.
std::set<std::pair<int, int>> fetches_between_hosts(std::span<const Session> sessions,
                                                    const Topology& topology);

}  // namespace hyperrun

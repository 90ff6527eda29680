// The choice of the algorithm that serves a collective. All members decide alike from facts that they all
// know, so that nobody has to ask. The simulator decides with the same function.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives/types.h"
#include "memory/host.h"

namespace hyperrun {

enum class Algorithm : std::uint8_t {
  // Within one host.
  kOneShot,  // small: the input travels in the control window with its flag, one synchronisation
  kDirect,   // peers' HBM is read (and for all-reduce written) in place, two synchronisations
  // Messages.
  kRing,             // neighbours only, p - 1 steps a phase
  kHalvingDoubling,  // all-reduce in 2 log2 p steps, fewer than p steps for small data
  kPairwise,         // every pair exchanges directly; reduces in the order of the ranks
  kBinomial,         // tree of a broadcast
  kDissemination,    // barrier
  // Both.
  kHierarchical,  // all-reduce: reduce-scatter inside a host, all-reduce between, all-gather inside
};

std::string_view name(Algorithm algorithm);  // "halving-doubling"

// The shape of a group: how its ranks are spread over hosts.
struct GroupShape {
  int p = 1;         // ranks
  int hosts = 1;     // hosts of these ranks
  int per_host = 1;  // ranks on each host; 0 if hosts differ

  bool operator==(const GroupShape&) const = default;
};

GroupShape shape_of(const std::vector<int>& ranks, const Topology& topology);

// The largest input (bytes of one rank) of a one-shot collective.
inline constexpr std::int64_t kOneShotBytes = 4096;

// Selects the algorithm of an all-reduce by messages among `p` members.
Algorithm select_message_all_reduce(DType dtype, ReduceOp op, std::int64_t bytes, int p);

// Selects the algorithm. kSend and kRecv take the shape of the pair (p = 2). For kAllToAllV the counts do not
// matter.
Algorithm select(const CollectiveArgs& args, const GroupShape& shape);

}  // namespace hyperrun

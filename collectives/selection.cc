#include "collectives/selection.h"

#include <algorithm>
#include <bit>
#include <map>

namespace hyperrun {
namespace {

// Below this size a step's latency outweighs its bytes, so fewer steps win.
constexpr std::int64_t kLatencyBytes = 65536;

Algorithm select_on_host(const CollectiveArgs& args, int p) {
  // The table of displacements takes the place of the payload.
  if (args.kind == Collective::kAllToAllV || args.kind == Collective::kSend ||
      args.kind == Collective::kRecv) {
    return Algorithm::kDirect;
  }
  // The root's input decides for all members of a broadcast, and they all know its size.
  const std::int64_t bytes = in_elements(args, p) * size_of(args.dtype);
  return bytes <= kOneShotBytes ? Algorithm::kOneShot : Algorithm::kDirect;
}

Algorithm select_messages(const CollectiveArgs& args, int p) {
  switch (args.kind) {
    case Collective::kAllReduce:
      return select_message_all_reduce(args.dtype, args.op, elements(args, p) * size_of(args.dtype), p);
    // A ring would round bfloat16 at every hop.
    case Collective::kReduceScatter:
      return args.dtype == DType::kF32 && p > 2 ? Algorithm::kRing : Algorithm::kPairwise;
    case Collective::kAllGather: return Algorithm::kRing;
    case Collective::kBroadcast: return Algorithm::kBinomial;
    case Collective::kBarrier: return Algorithm::kDissemination;
    default: return Algorithm::kPairwise;
  }
}

}  // namespace

std::string_view name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kOneShot: return "one-shot";
    case Algorithm::kDirect: return "direct";
    case Algorithm::kRing: return "ring";
    case Algorithm::kHalvingDoubling: return "halving-doubling";
    case Algorithm::kPairwise: return "pairwise";
    case Algorithm::kBinomial: return "binomial";
    case Algorithm::kDissemination: return "dissemination";
    case Algorithm::kHierarchical: return "hierarchical";
  }
  return "?";
}

GroupShape shape_of(const std::vector<int>& ranks, const Topology& topology) {
  std::map<int, int> members;
  for (const int r : ranks) ++members[topology.host_of[static_cast<std::size_t>(r)]];
  GroupShape shape{
      .p = static_cast<int>(ranks.size()), .hosts = static_cast<int>(members.size()), .per_host = 0};
  const int first = members.begin()->second;
  const bool even =
      std::all_of(members.begin(), members.end(), [&](const auto& m) { return m.second == first; });
  if (even) shape.per_host = first;
  return shape;
}

Algorithm select_message_all_reduce(DType dtype, ReduceOp op, std::int64_t bytes, int p) {
  const bool rounds = dtype == DType::kBF16 && op == ReduceOp::kSum;
  if (rounds || p == 2) return Algorithm::kPairwise;
  const bool power_of_two = std::has_single_bit(static_cast<unsigned>(p));
  return power_of_two || bytes <= kLatencyBytes ? Algorithm::kHalvingDoubling : Algorithm::kRing;
}

Algorithm select(const CollectiveArgs& args, const GroupShape& shape) {
  if (shape.hosts == 1) return select_on_host(args, shape.p);
  if (args.kind == Collective::kAllReduce && shape.per_host > 1) return Algorithm::kHierarchical;
  return select_messages(args, shape.p);
}

}  // namespace hyperrun

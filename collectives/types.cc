#include "collectives/types.h"

#include <algorithm>
#include <numeric>

namespace hyperrun {
namespace {

// The end of the block that ends last.
std::int64_t end_of_blocks(std::span<const std::int64_t> starts, std::span<const std::int64_t> counts) {
  if (starts.empty()) return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::int64_t end = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) end = std::max(end, starts[r] + counts[r]);
  return end;
}

// The extent of elements that lie in runs: of all members with `members`, else of one.
std::int64_t extent(const CollectiveArgs& args, int p, std::int64_t elements, bool members) {
  if (args.pitch == 0 || elements == 0) return elements;
  const bool exchanges = args.kind == Collective::kAllToAll;
  const std::int64_t own = exchanges ? args.all_to_all.x / p : args.inner;
  const std::int64_t outer = exchanges ? args.all_to_all.a : args.outer;
  const std::int64_t runs = outer * (members ? p : 1) * args.runs, run = own / args.runs;
  return ((runs - 1) * args.pitch + run) * (elements / (runs * run));
}

}  // namespace

std::string_view name(Collective kind) {
  switch (kind) {
    case Collective::kAllReduce: return "all-reduce";
    case Collective::kReduceScatter: return "reduce-scatter";
    case Collective::kAllGather: return "all-gather";
    case Collective::kAllToAll: return "all-to-all";
    case Collective::kAllToAllV: return "all-to-all-v";
    case Collective::kShift: return "shift";
    case Collective::kBroadcast: return "broadcast";
    case Collective::kSend: return "send";
    case Collective::kRecv: return "recv";
    case Collective::kBarrier: return "barrier";
  }
  return "?";
}

std::int64_t elements(const CollectiveArgs& args, int p) {
  const AllToAllShape& s = args.all_to_all;
  switch (args.kind) {
    case Collective::kReduceScatter:
    case Collective::kAllGather: return args.outer * args.inner * p;
    case Collective::kAllToAll: return s.a * s.x * s.b * s.y * s.c / p;
    case Collective::kAllToAllV:
      return std::accumulate(args.send_counts.begin(), args.send_counts.end(), std::int64_t{0});
    case Collective::kBarrier: return 0;
    default: return args.outer * args.inner;
  }
}

std::int64_t start_of(std::span<const std::int64_t> starts, std::span<const std::int64_t> counts, int peer) {
  if (!starts.empty()) return starts[static_cast<std::size_t>(peer)];
  return std::accumulate(counts.begin(), counts.begin() + peer, std::int64_t{0});
}

std::int64_t in_elements(const CollectiveArgs& args, int p) {
  if (args.kind == Collective::kRecv) return 0;
  if (args.kind == Collective::kAllToAllV) return end_of_blocks(args.send_starts, args.send_counts);
  return args.kind == Collective::kAllGather ? args.outer * args.inner : elements(args, p);
}

std::int64_t out_elements(const CollectiveArgs& args, int p) {
  if (args.kind == Collective::kSend) return 0;
  if (args.kind == Collective::kReduceScatter) return args.outer * args.inner;
  if (args.kind != Collective::kAllToAllV) return elements(args, p);
  return end_of_blocks(args.recv_starts, args.recv_counts);
}

std::int64_t in_extent(const CollectiveArgs& args, int p) {
  const bool members = args.kind == Collective::kAllToAll ? !args.all_to_all.gather_x
                                                          : args.kind == Collective::kReduceScatter;
  return extent(args, p, in_elements(args, p), members);
}

std::int64_t out_extent(const CollectiveArgs& args, int p) {
  const bool members =
      args.kind == Collective::kAllToAll ? args.all_to_all.gather_x : args.kind == Collective::kAllGather;
  return extent(args, p, out_elements(args, p), members);
}

}  // namespace hyperrun

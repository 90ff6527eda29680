#include "runtime/sim/duration.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "collectives/cost.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr double kNanosPerSecond = 1e9;
// HBM bytes that one reduced byte costs: two read, one written.
constexpr double kReduceTraffic = 3;

void check_rate(double rate, const char* field) {
  if (std::isfinite(rate) && rate > 0) return;
  throw Error(Code::kBadValue, "a rate of " + std::to_string(rate) + " cannot be simulated")
      .at(std::string("supernode.") + field)
      .legal("a positive number");
}

void check_latency(Nanos latency, const char* field) {
  if (latency.value >= 0) return;
  throw Error(Code::kBadValue, "a latency of " + std::to_string(latency.value) + " ns cannot be simulated")
      .at(std::string("supernode.") + field)
      .legal("0 or more");
}

Nanos to_nanos(double seconds) {
  const double nanos = std::ceil(seconds * kNanosPerSecond);
  // 2^62: far beyond any run, and safely within an int64.
  HR_CHECK(std::isfinite(nanos) && nanos >= 0 && nanos < 0x1p62,
           "a duration of " + std::to_string(seconds) + " s");
  return Nanos(static_cast<std::int64_t>(nanos));
}

Nanos compute_duration(const Instr& instr, const Mesh& mesh, const SupernodeSpec& spec) {
  const Work w = work(instr, mesh);
  const double rate = instr.stream == StreamKind::kCube ? spec.cube_flops : spec.vector_flops;
  return to_nanos(std::max(static_cast<double>(w.flops.value) / rate,
                           static_cast<double>(w.hbm.value) / spec.hbm_bandwidth));
}

Nanos collective_duration(const instr::Collective& c, const GroupShape& shape, const SupernodeSpec& spec) {
  const CollectiveArgs args = collective_args(c, shape.p);
  const LinkCost link{.alpha = static_cast<double>(spec.link_latency.value),
                      .beta = kNanosPerSecond / spec.link_bandwidth,
                      .gamma = kReduceTraffic * kNanosPerSecond / spec.hbm_bandwidth};
  const Nanos t = time(args, select(args, shape), shape, link, link);
  HR_CHECK(t.value >= 0, "a collective ends before it begins");
  return t;
}

}  // namespace

void check_rates(const SupernodeSpec& spec) {
  check_rate(spec.cube_flops, "cube_flops");
  check_rate(spec.vector_flops, "vector_flops");
  check_rate(spec.hbm_bandwidth, "hbm_bandwidth");
  check_rate(spec.link_bandwidth, "link_bandwidth");
  check_latency(spec.link_latency, "link_latency");
  check_latency(spec.launch_latency, "launch_latency");
}

Nanos duration(const Instr& instr, const Mesh& mesh, const GroupShape& shape, const SupernodeSpec& spec) {
  const auto* collective = std::get_if<instr::Collective>(&instr.op);
  return spec.launch_latency + (collective == nullptr ? compute_duration(instr, mesh, spec)
                                                      : collective_duration(*collective, shape, spec));
}

CollectiveArgs collective_args(const instr::Collective& c, int p) {
  CollectiveArgs args;
  switch (c.kind) {
    case instr::CollectiveKind::kAllReduce: args.kind = Collective::kAllReduce; break;
    case instr::CollectiveKind::kReduceScatter: args.kind = Collective::kReduceScatter; break;
    case instr::CollectiveKind::kAllGather: args.kind = Collective::kAllGather; break;
    case instr::CollectiveKind::kAllToAll: args.kind = Collective::kAllToAll; break;
  }
  args.dtype = c.dtype;
  args.op = c.reduction == Reduction::kSum ? ReduceOp::kSum : ReduceOp::kMax;
  args.outer = c.outer;
  args.inner = c.inner;
  if (c.kind != instr::CollectiveKind::kAllToAll) return args;
  const std::int64_t from = c.from * p, to = c.to * p;  // whole
  args.all_to_all = c.gather_first ? AllToAllShape{c.outer, from, c.middle, to, c.inner, true}
                                   : AllToAllShape{c.outer, to, c.middle, from, c.inner, false};
  return args;
}

}  // namespace hyperrun

#include "runtime/sim/duration.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "collectives/cost.h"
#include "runtime/base/error.h"
#include "runtime/ir/collective_args.h"

namespace hyperrun {
namespace {

constexpr double kNanosPerSecond = 1e9;
// HBM bytes that one reduced byte costs: two read, one written.
constexpr double kReduceTraffic = 3;

// The slowest that makes sense; nothing that a device does at it overflows a time.
constexpr double kLeastRate = 1e3;

void check_rate(double rate, const char* field) {
  if (std::isfinite(rate) && rate >= kLeastRate) return;
  throw Error(Code::kBadValue, "a rate of " + std::to_string(rate) + " cannot be simulated")
      .at(std::string("supernode.") + field)
      .legal("1000 or more, a second");
}

constexpr Nanos kMostLatency{1'000'000'000};

void check_latency(Nanos latency, const char* field) {
  if (latency.value >= 0 && latency <= kMostLatency) return;
  throw Error(Code::kBadValue, "a latency of " + std::to_string(latency.value) + " ns cannot be simulated")
      .at(std::string("supernode.") + field)
      .legal("0 to 1 second");
}

// More than a day in one instruction is a wrong rate; below it no sum of a Program's times overflows.
constexpr double kLongest = 1e14;

Nanos checked(double nanos, const Instr& instr) {
  HR_CHECK(!std::isnan(nanos) && nanos >= 0, "time runs forward");
  if (nanos > kLongest) {
    throw Error(Code::kBadValue,
                "one " + std::string(name(instr.op)) + " would last " + std::to_string(nanos * 1e-9) + " s")
        .at("supernode")
        .fix("correct the rates or latencies of the supernode");
  }
  return Nanos(std::llround(std::ceil(nanos)));
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

// The share of the cube's peak that a product reaches.
double efficiency(const InstrOp& op, const Machine& machine) {
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return machine.tiling(static_cast<double>(m), static_cast<double>(n)) *
           machine.products.at(static_cast<double>(k));
  };
  const auto attention = [&](const auto& o) { return machine.attention.at(static_cast<double>(o.seq)); };
  return std::visit(
      Overloaded{
          [&](const instr::Gemm& o) { return product(o.m, o.n, o.k); },
          [&](const instr::GroupedGemm& o) { return product(o.rows, o.n, o.k); },
          [&](const instr::GroupedOuter& o) { return product(o.m * o.groups, o.n, o.rows / o.groups); },
          [&](const instr::Attention& o) { return attention(o); },
          [&](const instr::AttentionGrad& o) { return attention(o); },
          [&](const instr::AttentionStep& o) { return attention(o); },
          [&](const instr::AttentionStepGrad& o) { return attention(o); },
          [](const auto&) { return 1.0; },
      },
      op);
}

double compute_nanos(const Instr& instr, const Mesh& mesh, const Machine& machine) {
  const Work w = work(instr, mesh);
  const bool cube = instr.stream == StreamKind::kCube;
  const DType type = instr.in.empty() ? DType::kF32 : instr.in.front().dtype;
  const double rate =
      cube ? machine.cube.of(type).value * efficiency(instr.op, machine) : machine.vector.value;
  const auto flops = static_cast<double>(w.flops.value), bytes = static_cast<double>(w.hbm.value);
  const double arithmetic = flops > 0 ? flops / rate : 0;
  const double memory = bytes > 0 ? bytes / (machine.hbm_bandwidth.value * machine.memory.at(bytes)) : 0;
  return (cube ? machine.launch_cube : machine.launch_vector).value +
         std::max(arithmetic, memory) * kNanosPerSecond;
}

// Along a ring one member of a unit sends to the next unit, else all of them do.
LinkCost link(const Level& level, const Reach::Unit& unit, bool ring, double bytes, const Machine& machine) {
  const auto senders = static_cast<double>(unit.below) / static_cast<double>(ring ? unit.members_below : 1);
  const double links =
      level.mesh ? static_cast<double>(unit.members - 1) / static_cast<double>(level.devices - 1) : 1;
  const double own = level.bandwidth.value * links;
  const double share = level.shared.value > 0 ? level.shared.value / senders : own;
  return {.alpha = level.latency.value,
          .beta = kNanosPerSecond / (std::min(own, share) * level.efficiency.at(bytes)),
          .gamma = kReduceTraffic * kNanosPerSecond / machine.hbm_bandwidth.value};
}

double collective_nanos(const instr::Collective& c, const Where& where, const Machine& machine) {
  const CollectiveArgs args = collective_args(c, where.shape.p);
  const Algorithm algorithm = select(args, where.shape);
  const auto bytes = static_cast<double>(elements(args, where.shape.p) * size_of(args.dtype));
  const bool ring = algorithm == Algorithm::kRing;
  const auto at = [&](int level, const Reach::Unit& unit) {
    return link(machine.levels[static_cast<std::size_t>(level)], unit, ring, bytes, machine);
  };
  return machine.launch_comm.value +
         static_cast<double>(time(args, algorithm, where.shape,
                                  at(where.reach.inside, where.reach.inside_unit),
                                  at(where.reach.between, where.reach.between_unit))
                                 .value);
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

Nanos duration(const Instr& instr, const Mesh& mesh, const Where& where, const Machine& machine) {
  const auto* collective = std::get_if<instr::Collective>(&instr.op);
  return checked(collective == nullptr ? compute_nanos(instr, mesh, machine)
                                       : collective_nanos(*collective, where, machine),
                 instr);
}

}  // namespace hyperrun

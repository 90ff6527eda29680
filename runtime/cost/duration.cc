#include "runtime/cost/duration.h"

#include <fmt/core.h>

#include <cmath>
#include <string>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

// The slowest sensible rate per second. No instruction's time overflows at it.
constexpr double kLeastRate = 1e3;

void check_rate(double rate, const char* field) {
  if (std::isfinite(rate) && rate >= kLeastRate) return;
  throw Error(Code::kBadValue, fmt::format("a rate of {:g} cannot be simulated", rate))
      .at(std::string("supernode.") + field)
      .legal("1000 or more, a second");
}

constexpr Nanos kMostLatency{1'000'000'000};

void check_latency(Nanos latency, const char* field) {
  if (latency.value >= 0 && latency <= kMostLatency) return;
  throw Error(Code::kBadValue, fmt::format("a latency of {} ns cannot be simulated", latency.value))
      .at(std::string("supernode.") + field)
      .legal("0 to 1 second");
}

// ns. A longer instruction indicates a wrong rate. Below it no sum of a Program's times overflows.
constexpr double kLongest = 1e13;

}  // namespace

Nanos checked_duration(double nanos, const Instr& instr, const Machine& machine) {
  HR_CHECK(std::isnan(nanos) || nanos >= 0, "time runs forward");
  if (!(nanos <= kLongest)) {  // rejects NaN too
    throw Error(Code::kBadValue, fmt::format("one {} would last {:g} s on the machine \"{}\"", name(instr.op),
                                             nanos * 1e-9, machine.name))
        .at("supernode")
        .legal("at most 10,000 s")
        .fix(
            "correct the rates, latencies and efficiencies of the supernode or its profile, or make the "
            "model smaller");
  }
  return Nanos(std::llround(std::ceil(nanos)));
}

void check_rates(const SupernodeSpec& spec) {
  check_rate(spec.cube_flops, "cube_flops");
  check_rate(spec.vector_flops, "vector_flops");
  check_rate(spec.hbm_bandwidth, "hbm_bandwidth");
  check_rate(spec.link_bandwidth, "link_bandwidth");
  check_latency(spec.link_latency, "link_latency");
  check_latency(spec.launch_latency, "launch_latency");
  check_rate(spec.pool_bandwidth, "pool_bandwidth");
  check_latency(spec.pool_latency, "pool_latency");
  check_rate(spec.flash_bandwidth, "flash_bandwidth");
  check_latency(spec.flash_latency, "flash_latency");
}

Nanos duration(const Instr& instr, const Mesh& mesh, const Where& where, const Machine& machine) {
  if (const auto* collective = std::get_if<instr::Collective>(&instr.op))
    return checked_duration(collective_cost(*collective, where, machine).nanos(), instr, machine);
  if (const auto* fetch = std::get_if<instr::Fetch>(&instr.op))
    return checked_duration(fetch_cost(*fetch, instr.out[0], machine).nanos(), instr, machine);
  if (beyond_hbm(instr.op) != Tier::kHbm)
    return checked_duration(transfer_cost(instr, machine).nanos(), instr, machine);
  return checked_duration(compute_cost(instr, mesh, machine).nanos(), instr, machine);
}

}  // namespace hyperrun

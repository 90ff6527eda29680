// The simulated machine: walks the Programs that the emulated machine executes, in virtual time.
//
//   const SimResult r = simulate(plan, "train", job.supernode, Topology::one_host(job.supernode.devices));
//   r.makespan;      // of the slowest device
//   r.stats(3);      // what the executor would report of device 3
//
// An instruction starts when its stream is free and its waits have finished; a collective, when all of its
// group have come to it. Devices that are alike (same Program, same place in groups of the same shapes,
// among devices that are alike) do the same at the same times and are walked once. Bytes are exact for
// each device all the same: they follow from its place in each group.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "memory/host.h"
#include "runtime/base/units.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"
#include "runtime/sim/breakdown.h"
#include "runtime/sim/walk.h"

namespace hyperrun {

struct SimOptions {
  bool fold = true;  // walk devices that are alike once; without it each device, with equal results
  // Computing takes a device so many times as long as it should; those that are not named, once.
  std::map<int, double> slow;
  // Each computation is longer or shorter by a factor whose logarithm is normal, with this deviation; drawn
  // by the seed for each device and instruction. Then no two devices are alike.
  double jitter = 0;
  std::uint64_t seed = 1;
};

// What is the same for all devices of a role.
struct SimRole {
  std::vector<TrafficKind> kinds;          // in the order in which the Program first uses them
  std::vector<std::int64_t> counts;        // collectives of a device, by kind
  std::array<Bytes, kTiers> high_water{};  // by tier, end of the highest byte touched
  Bytes live_peak{};                       // in Program order, as it was planned
  CategoryBytes live_at_peak{};
};

struct SimResult {
  Nanos makespan{};
  std::vector<SimTimes> classes;                 // of devices that are alike
  std::vector<Breakdown> parts;                  // of the makespan, by class
  std::vector<std::vector<UnderWay>> under_way;  // by class, by kind of its role
  std::vector<int> class_of;                     // by device
  std::vector<SimRole> roles;
  std::vector<std::size_t> role_of;         // by device
  std::vector<std::vector<Bytes>> traffic;  // by device, by kind of its role: bytes that it moves
  std::vector<std::vector<Bytes>> links;    // by device, by level of the machine: those that cross it
  double matrix_flops = 0;                  // of all devices together: matrix products, attention with them
  std::int64_t walked = 0;                  // instructions, all classes together

  const Breakdown& breakdown(int device) const {
    return parts[static_cast<std::size_t>(class_of[static_cast<std::size_t>(device)])];
  }
  const SimTimes& times(int device) const {
    return classes[static_cast<std::size_t>(class_of[static_cast<std::size_t>(device)])];
  }
  // The executor's report of this device, without spans; traced, of the Program that it walked, with spans
  // and live bytes over time.
  InvocationStats stats(int device) const;
  InvocationStats traced(int device, const Program& program) const;
};

// How long each instruction lasts on the device when nothing holds it, as simulate() reckons.
std::vector<Nanos> durations(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                             const Topology& topology, int device);

// What instructions that are alike take of a device, in all and each, and how that is reckoned.
struct ExplainedInstrs {
  std::string what;   // "Gemm m=4096 n=1664 k=2048"
  std::string first;  // the origin of the first of them
  std::int64_t count = 0;
  Nanos each{};
  std::string reckoning;  // lines for people
};
// The costliest first.
std::vector<ExplainedInstrs> explain(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                                     const Topology& topology, int device);

// `topology` names a host for every device of the plan's mesh.
// Throws kBadValue for impossible rates, kUsage for a slowdown or jitter that is negative, a device that
// there is not or a topology of another size, kInternal for a Program that cannot run to its end.
SimResult simulate(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                   const Topology& topology, const SimOptions& options = {});

// How long a Program lasts on the machine of `spec`, whose first devices are those of its plan: what
// simulate() finds, in less time.
Nanos makespan(const Plan& plan, std::string_view program, const SupernodeSpec& spec);

// The same, for those who change the machine's figures again and again.
struct TimedStep {
  Nanos makespan{};
  std::vector<Nanos> durations;  // of all instructions: who has the same lasts as long
};
// `known`: of the same Program, devices and options. It is the answer where no duration is another.
TimedStep timed(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                const SimOptions& options = {}, const TimedStep* known = nullptr);

}  // namespace hyperrun

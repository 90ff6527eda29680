// The simulated machine. It runs, in virtual time, the Programs that the emulated machine executes.
//
//   const SimResult r = simulate(plan, "train", job.supernode, Topology::one_host(job.supernode.devices));
//   r.makespan;      // of the slowest device
//   r.stats(3);      // what the executor would report of device 3
//
// An instruction starts when its stream is free and its waits have finished; a collective, when all of its
// group have come to it. Devices that are alike (same Program, same place in groups of the same shapes, among
// devices that are alike) do the same at the same times and are simulated once. Bytes are exact for each
// device all the same: they follow from its place in each group.
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
#include "runtime/sim/event_loop.h"

namespace hyperrun {

struct SimOptions {
  bool fold = true;  // simulate devices that are alike once; without it each device, with equal results
  // Slowdown of a device's computation, as a factor; 1 for devices that are not named.
  std::map<int, double> slow;
  // Standard deviation of the logarithm of a random factor on each computation. The seed, the device and the
  // instruction determine the factor. Then no two devices are alike.
  double jitter = 0;
  std::uint64_t seed = 1;
};

// Figures that are the same for all devices of a role.
struct SimRole {
  std::vector<TrafficKind> kinds;          // in the order in which the Program first uses them
  std::vector<std::int64_t> counts;        // collectives of a device, by kind
  std::array<Bytes, kTiers> high_water{};  // by tier: end of the highest byte touched
  Bytes live_peak{};                       // in Program order, as planned
  CategoryBytes live_at_peak{};
};

struct SimResult {
  Nanos makespan{};
  std::vector<SimTimes> classes;                 // by class of devices that are alike
  std::vector<Breakdown> parts;                  // of the makespan, by class
  std::vector<std::vector<UnderWay>> under_way;  // by class, by kind of its role
  std::vector<int> class_of;                     // by device
  std::vector<SimRole> roles;
  std::vector<std::size_t> role_of;         // by device
  std::vector<std::vector<Bytes>> traffic;  // by device, by kind of its role: bytes that it moves
  std::vector<std::vector<Bytes>> links;    // by device, by level of the machine: those that cross it
  double matrix_flops = 0;                  // of all devices together: matrix products, attention with them
  std::int64_t simulated_instrs = 0;        // instructions, all classes together

  const Breakdown& breakdown(int device) const {
    return parts[static_cast<std::size_t>(class_of[static_cast<std::size_t>(device)])];
  }
  const SimTimes& times(int device) const {
    return classes[static_cast<std::size_t>(class_of[static_cast<std::size_t>(device)])];
  }
  // The executor's report of this device. stats() leaves out spans; traced() adds spans and live bytes over
  // time, for the Program that was simulated.
  InvocationStats stats(int device) const;
  InvocationStats traced(int device, const Program& program) const;
};

// Duration of each instruction on the device when nothing holds it, as in simulate().
std::vector<Nanos> durations(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                             const Topology& topology, int device);

// The time that instructions that are alike take on a device, and how it is calculated.
struct ExplainedInstrs {
  std::string what;   // "Gemm m=4096 n=1664 k=2048"
  std::string first;  // origin of the first such instruction
  std::int64_t count = 0;
  Nanos each{};
  std::string reckoning;  // the calculation, as lines for people
};
// Explains a device's instructions, the costliest first.
std::vector<ExplainedInstrs> explain(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                                     const Topology& topology, int device);

// Simulates one Program of a plan. `topology` names a host for every device of the plan's mesh. Throws
// kBadValue for impossible rates. Throws kUsage for a negative slowdown or jitter, for a device that does not
// exist, or for a topology of another size. Throws kInternal for a Program that cannot run to its end.
SimResult simulate(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                   const Topology& topology, const SimOptions& options = {});

// Makespan of a Program on the machine of `spec`, whose first devices are those of its plan. It equals that
// of simulate(), but takes less time.
Nanos makespan(const Plan& plan, std::string_view program, const SupernodeSpec& spec);

// The makespan with its inputs, for callers that change the machine's figures again and again.
struct TimedStep {
  Nanos makespan{};
  std::vector<Nanos> durations;  // of all instructions; equal durations give an equal makespan
};
// `known` is an earlier result for the same Program, devices and options. It is returned if no duration
// differs.
TimedStep timed(const Plan& plan, std::string_view program, const SupernodeSpec& spec,
                const SimOptions& options = {}, const TimedStep* known = nullptr);

}  // namespace hyperrun

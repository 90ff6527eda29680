// Devices that share the cores of a host while they compute.
#include "runtime/sim/shared_cores.h"

#include <gtest/gtest.h>

#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/simulate.h"
#include "tests/sim/programs.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using enum StreamKind;

TEST(SharedCores, ThoseWhoComputeAtOnceGoOnAlike) {
  SharedCores<char> core(1);
  EXPECT_FALSE(core.next());
  core.begin(0, Nanos(100), 1, 'a');
  EXPECT_EQ(core.next(), 100);
  core.begin(50, Nanos(100), 1, 'b');
  EXPECT_EQ(core.next(), 150) << "half of a was left, at half the rate";
  EXPECT_EQ(core.ended(150), (std::vector<char>{'a'}));
  EXPECT_EQ(core.next(), 200) << "b has had 50, and the rest alone";
  EXPECT_EQ(core.ended(200), (std::vector<char>{'b'}));
  EXPECT_FALSE(core.next());
}

TEST(SharedCores, OnesThatStandForSeveralCountAsMany) {
  SharedCores<char> cores(2);
  cores.begin(0, Nanos(100), 3, 'a');
  EXPECT_EQ(cores.next(), 150);
  cores.begin(0, Nanos(100), 1, 'b');
  EXPECT_EQ(cores.next(), 200);
  EXPECT_EQ(cores.ended(200), (std::vector<char>{'a', 'b'}));
}

SupernodeSpec with_cores(double cores) {
  SupernodeSpec spec = slow_machine();
  Machine machine = machine_of(spec);
  machine.host_cores = {cores};
  spec.machine = machine;
  return spec;
}

TEST(SharedCores, ADeviceIsFasterWhileOthersWait) {
  const Plan plan = ProgramBuilder({{"dp", 4}})
                        .compute(kCube, 1000)
                        .collective(instr::CollectiveKind::kAllReduce, 64, {{kCube, 1}})
                        .compute(kCube, 1000, {{kComm, 1}})
                        .plan();
  const Topology topology = Topology::one_host(4);
  const auto makespan = [&](double cores, const SimOptions& options) {
    return simulate(plan, "test", with_cores(cores), topology, options).makespan.value;
  };
  const std::int64_t alone = makespan(0, {}), collective = alone - 2000;
  EXPECT_EQ(makespan(4, {}), alone);
  EXPECT_EQ(makespan(2, {}), 4000 + collective);
  EXPECT_EQ(makespan(1, {.fold = false}), 8000 + collective);
  // Device 3 has twice as much to do: half of that is left when the others wait, and it then has a core of
  // its own.
  EXPECT_EQ(makespan(2, {.slow = {{3, 2.0}}}), 2 * (2000 + 1000) + collective);
}

TEST(SharedCores, OfOneHostAreNotThoseOfAnother) {
  const Plan plan = ProgramBuilder({{"dp", 4}}).compute(kCube, 1000).plan();
  SupernodeSpec spec = with_cores(1);
  Machine machine = *spec.machine;
  machine.levels = {machine.levels[0], machine.levels[0]};
  machine.levels[0].devices = 2;
  machine.levels[1].addressable = false;
  spec.machine = machine;
  const SimResult r = simulate(plan, "test", spec, hosts_of(machine, 4));
  EXPECT_EQ(r.makespan.value, 2000);
}

TEST(SharedCores, MakeNoDifferenceWhereThereAreEnough) {
  const Job job = small_job(2, 2, {"sp"});
  const Plan plan = compile(job).plan;
  const Topology topology = Topology::one_host(4);
  SupernodeSpec spec = job.supernode;
  const SimResult without = simulate(plan, "train", spec, topology);
  Machine machine = machine_of(spec);
  machine.host_cores = {8};  // a core for each device's cube and vector unit
  spec.machine = machine;
  EXPECT_EQ(simulate(plan, "train", spec, topology).times(0).spans, without.times(0).spans);
  machine.host_cores = {1};
  spec.machine = machine;
  const SimResult folded = simulate(plan, "train", spec, topology);
  EXPECT_GT(folded.makespan, without.makespan);
  EXPECT_EQ(simulate(plan, "train", spec, topology, {.fold = false}).makespan, folded.makespan);
}

}  // namespace
}  // namespace hyperrun::testing

// Durations on a machine of several levels, calculated by hand: efficiency, tiles, the level that a group
// crosses, links shared by a unit's devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "runtime/compile/compile.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/duration.h"
#include "runtime/sim/simulate.h"
#include "tests/sim/programs.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using instr::CollectiveKind::kAllGather;
using instr::CollectiveKind::kAllReduce;

// Packages of 2 in nodes of 4; a byte lasts 1 ns in a package, 2 ns in a node, 4 ns beyond, a message 10, 20
// and 40 ns. HBM is read in place within a node; reductions cost nothing.
Machine machine_of_levels() {
  Machine m;
  m.cube = {{1e9}, {4e9}};
  m.vector = {1e9};
  m.hbm_bandwidth = {1e18};
  m.levels = {
      {.name = "package", .devices = 2, .addressable = true, .latency = {10}, .bandwidth = {1e9}},
      {.name = "node", .devices = 4, .addressable = true, .latency = {20}, .bandwidth = {0.5e9}},
      {.name = "cluster", .latency = {40}, .bandwidth = {0.25e9}},
  };
  return m;
}

Nanos lasts(const Machine& m, int devices, const std::vector<int>& group, instr::CollectiveKind kind,
            std::int64_t inner) {
  Instr instr;
  instr.op = instr::Collective{.kind = kind, .axes = {0}, .inner = inner};
  instr.stream = StreamKind::kComm;
  const Topology topology = hosts_of(m, devices);
  return duration(instr, Mesh{{{"a", devices}}}, {shape_of(group, topology), reach_of(group, topology, m)},
                  m);
}

// The calculation for 1,024 floats from each of p: (p - 1) x 4,096 bytes come in.
TEST(Machine, AGroupCrossesTheWidestLevelBetweenItsMembers) {
  const Machine m = machine_of_levels();
  EXPECT_EQ(lasts(m, 8, {0, 1}, kAllGather, 1024), Nanos(10 + 4096));
  EXPECT_EQ(lasts(m, 8, {2, 3}, kAllGather, 1024), Nanos(10 + 4096));
  EXPECT_EQ(lasts(m, 8, {1, 2}, kAllGather, 1024), Nanos(20 + 2 * 4096));
  EXPECT_EQ(lasts(m, 8, {0, 1, 2, 3}, kAllGather, 1024), Nanos(20 + 3 * 2 * 4096));
  EXPECT_EQ(lasts(m, 8, {3, 4}, kAllGather, 1024), Nanos(40 + 4 * 4096)) << "a message between hosts";
}

// Expected: reduce-scatter inside, all-reduce of a quarter between, all-gather inside.
TEST(Machine, AHierarchyHasTheCostsOfBothItsLevels) {
  Machine m = machine_of_levels();
  m.hbm_bandwidth = {3e18};
  const Nanos expected(2 * 20 + 2 * 3 * 2 * 4096 / 4 + 2 * 40 + 4 * 4096 / 4);
  EXPECT_EQ(lasts(m, 8, {0, 1, 2, 3, 4, 5, 6, 7}, kAllReduce, 1024), expected);
}

// All members send in turn, one of each node to the outside: 2 x 7/8 of the bytes over the node's whole link.
TEST(Machine, ALevelOfRingsKnowsNoHierarchy) {
  Machine m = machine_of_levels();
  m.levels[2].ring = true;
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(lasts(m, 8, all, kAllReduce, 1 << 15), Nanos(14 * 40 + 4 * 2 * 7 * (4 << 15) / 8));
  m.levels[2].shared = {0.25e9};
  EXPECT_EQ(lasts(m, 8, all, kAllReduce, 1 << 15), Nanos(14 * 40 + 4 * 2 * 7 * (4 << 15) / 8));
  EXPECT_EQ(lasts(m, 8, {0, 4}, kAllReduce, 1 << 15), Nanos(2 * 40 + 4 * 4 * (4 << 15))) << "with three more";
  EXPECT_EQ(lasts(m, 4, {0, 1, 2, 3}, kAllReduce, 1 << 15), Nanos(2 * 20 + 2 * 2 * 3 * (4 << 15) / 4))
      << "inside of a node in place";
  m.levels[2].ring = false;
  const Nanos few = lasts(m, 8, all, kAllReduce, 1024);
  m.levels[2].ring = true;
  EXPECT_EQ(lasts(m, 8, all, kAllReduce, 1024), few) << "few bytes take few steps";
}

TEST(Machine, DevicesOfAUnitShareItsWayOut) {
  Machine m = machine_of_levels();
  m.levels[2].shared = {0.25e9};
  EXPECT_EQ(lasts(m, 8, {0, 4}, kAllGather, 1024), Nanos(40 + 4 * 4 * 4096)) << "with three more groups";
  EXPECT_EQ(lasts(m, 8, {0, 1, 2, 3, 4, 5, 6, 7}, kAllGather, 1024), Nanos(7 * 40 + 7 * 4 * 4096))
      << "along a ring one of four sends out";
  EXPECT_EQ(lasts(m, 5, {0, 4}, kAllGather, 1024), Nanos(40 + 4 * 4 * 4096)) << "as the first unit has them";
  m.levels[2].shared = {8e9};
  EXPECT_EQ(lasts(m, 8, {0, 4}, kAllGather, 1024), Nanos(40 + 4 * 4096))
      << "none is faster than its own link";
}

TEST(Machine, AMeshGivesAGroupTheLinksToItsMembers) {
  Machine m = machine_of_levels();
  m.levels[1].mesh = true;
  EXPECT_EQ(lasts(m, 4, {0, 2}, kAllGather, 1024), Nanos(20 + 3 * 2 * 4096));
  EXPECT_EQ(lasts(m, 4, {0, 1, 2, 3}, kAllGather, 1024), Nanos(20 + 3 * 2 * 4096));
}

TEST(Machine, EfficiencyIsHalfOfItsCeilingAtHalf) {
  const Efficiency e{{0.8}, {100}};
  EXPECT_DOUBLE_EQ(e.at(100), 0.4);
  EXPECT_DOUBLE_EQ(e.at(300), 0.6);
  EXPECT_DOUBLE_EQ(Efficiency{}.at(1), 1);
  Machine m = machine_of_levels();
  m.levels[0].efficiency = {{1}, {8192}};  // of two times 4,096 bytes
  EXPECT_EQ(lasts(m, 2, {0, 1}, kAllGather, 1024), Nanos(10 + 2 * 4096));
}

// 3 x 2 tiles on 4 cores are two rounds: 8 tiles of 16 x 32.
TEST(Machine, TilesThatStandOutCostAsWholeOnes) {
  Machine m = machine_of_levels();
  m.tiles = {{4}, {16}, {32}};
  EXPECT_DOUBLE_EQ(tiling({40, 50, 1}, m, 1e9).share, 40.0 * 50 / (8 * 16 * 32));
  EXPECT_DOUBLE_EQ(tiling({32, 64, 1}, m, 1e9).share, 1);
  Instr gemm;
  gemm.op = instr::Gemm{.m = 40, .n = 50, .k = 10};
  EXPECT_EQ(duration(gemm, Mesh{}, {}, m), Nanos(2 * 10 * 8 * 16 * 32));
  gemm.in = {{BufferId(0), Bytes(0), Bytes(0), DType::kBF16}};
  EXPECT_EQ(duration(gemm, Mesh{}, {}, m), Nanos(2 * 10 * 8 * 16 * 32 / 4)) << "at the rate of its operands";
}

// Classes must separate devices whose groups cross other levels: 16 devices in packages of 2 and nodes of 4.
TEST(Machine, FoldedEqualsUnfoldedOnEveryLevel) {
  for (const char* layout : {"dp:4 tp:4 sp", "dp:8 tp:2 zero3", "pp:2 dp:2 tp:4 sp", "pp:4 dp:4 zero1"}) {
    Job job = small_job(layout);
    job.supernode.machine = machine_of_levels();
    job.supernode.machine->levels[2].shared = {0.5e9};
    const Plan plan = compile(job).plan;
    const Topology topology = hosts_of(*job.supernode.machine, job.supernode.devices);
    const SimResult folded = simulate(plan, "train", job.supernode, topology);
    const SimResult unfolded = simulate(plan, "train", job.supernode, topology, {.fold = false});
    EXPECT_LT(folded.classes.size(), unfolded.classes.size()) << layout;
    for (int d = 0; d < job.supernode.devices; ++d) {
      EXPECT_EQ(folded.times(d).spans, unfolded.times(d).spans) << layout << ", device " << d;
      EXPECT_EQ(folded.stats(d), unfolded.stats(d)) << layout << ", device " << d;
    }
  }
}

// With three replicas of a pipeline on nodes of eight, the boundaries between stages cross nodes at different
// places. A message's duration depends on its peer's distance, not on its group's extent.
TEST(Machine, FoldedPairsAreAsFarApart) {
  Job job = small_job("pp:4 dp:3 tp:2");
  job.model.layers = 7;
  job.parallel.pipeline.stages = {{0, 4}, {1, 1}, {2, 1}, {3, 1}};
  job.training.batch = 12;
  job.training.micro_batches = 4;
  Machine machine = machine_of_levels();
  machine.levels[1].devices = 8;
  machine.levels[2].bandwidth = {1e6};
  job.supernode.machine = machine;
  const Plan plan = compile(job).plan;
  const Topology topology = hosts_of(machine, job.supernode.devices);
  const SimResult folded = simulate(plan, "train", job.supernode, topology);
  const SimResult unfolded = simulate(plan, "train", job.supernode, topology, {.fold = false});
  EXPECT_LT(folded.classes.size(), unfolded.classes.size());
  EXPECT_EQ(folded.makespan, unfolded.makespan);
  for (int d = 0; d < job.supernode.devices; ++d)
    EXPECT_EQ(folded.times(d).spans, unfolded.times(d).spans) << "device " << d;
}

// If the last unit is cut short, both ends of a message must still agree on its duration.
TEST(Machine, APairLastsAsLongForBothOfItsEnds) {
  Machine machine = machine_of_levels();
  machine.levels[1].devices = 8;
  machine.levels[2].shared = {1e6};
  for (const char* words : {"pp:4 dp:3", "ring:4 dp:3", "pp:2 dp:5"}) {
    Job job = small_job(words);
    set_layers(job, 4);
    job.training.batch = 60;
    job.training.micro_batches = 2;
    job.supernode.machine = machine;
    const Plan plan = compile(job).plan;
    const Topology topology = hosts_of(machine, job.supernode.devices);
    const SimResult folded = simulate(plan, "train", job.supernode, topology);
    EXPECT_EQ(folded.makespan, simulate(plan, "train", job.supernode, topology, {.fold = false}).makespan)
        << words;
  }
}

// Traffic crosses one level or another; the all-reduce over both hosts has a part on each.
TEST(Machine, EveryByteCrossesALevel) {
  ProgramBuilder b({{"a", 8}});
  b.collective(kAllReduce, 1024);
  SupernodeSpec spec = slow_machine();
  spec.devices = 8;
  spec.machine = machine_of_levels();
  const Topology topology = hosts_of(*spec.machine, 8);
  const SimResult r = simulate(b.plan(), "test", spec, topology);
  for (int d = 0; d < 8; ++d)
    EXPECT_EQ(r.links[static_cast<std::size_t>(d)],
              (std::vector<Bytes>{Bytes(0), Bytes(2 * 3 * 1024), Bytes(1024)}))
        << d;

  // In a ring three of four members of a node send to the next one in it.
  ProgramBuilder large({{"a", 8}});
  large.collective(kAllReduce, 1 << 16);
  spec.machine->levels[2].ring = true;
  const SimResult ring = simulate(large.plan(), "test", spec, topology);
  for (std::size_t d = 0; d < 8; ++d) {
    const Bytes all(2 * 7 * (4 << 16) / 8);
    EXPECT_EQ(ring.links[d][1], d % 4 == 3 ? Bytes(0) : all) << d;
    EXPECT_EQ(ring.links[d][2], d % 4 == 3 ? all : Bytes(0)) << d;
  }

  Job job = small_job("pp:2 dp:2 tp:2 sp zero1");
  job.supernode.machine = machine_of_levels();
  const SimResult of_job = simulate(compile(job).plan, "train", job.supernode, topology);
  for (std::size_t d = 0; d < 8; ++d) {
    Bytes by_kind{}, by_level{};
    for (const Bytes b_kind : of_job.traffic[d]) by_kind += b_kind;
    for (const Bytes b_level : of_job.links[d]) by_level += b_level;
    EXPECT_EQ(by_kind, by_level) << d;
  }
}

// Attention that writes its scores: twice the operations forward, four products for five halves backward, and
// the bytes of each score besides; more if heads x sequences are no multiple.
TEST(Machine, ScoresInMemoryCostTheirBytes) {
  Machine m = machine_of_levels();
  m.cube = {{1e9}, {1e9}};
  m.hbm_bandwidth = {1e9};
  const auto nanos = [&](const InstrOp& op) {
    Instr instr;
    instr.op = op;
    instr.stream = StreamKind::kCube;
    return compute_cost(instr, Mesh{{{"a", 1}}}, m).nanos();
  };
  const instr::Attention forward{
      .batch = 2, .seq = 64, .kv_heads = 3, .group = 1, .head_dim = 16, .value_dim = 16};
  const instr::AttentionGrad backward{
      .batch = 2, .seq = 64, .kv_heads = 3, .group = 1, .head_dim = 16, .value_dim = 16};
  const double scores = 2 * 3 * 64 * 64, product = 2 * scores * 16;  // operations of a whole product
  EXPECT_DOUBLE_EQ(nanos(forward), product) << "two halves";
  EXPECT_DOUBLE_EQ(nanos(backward), 2.5 * product) << "five halves";
  m.scores = {
      .forward = {8}, .backward = {9}, .multiple = {3}, .forward_apart = {42}, .backward_apart = {52}};
  EXPECT_DOUBLE_EQ(nanos(forward), 2 * product + 8 * scores);
  EXPECT_DOUBLE_EQ(nanos(backward), 4 * product + 9 * scores);
  m.scores.multiple = {4};
  EXPECT_DOUBLE_EQ(nanos(forward), 2 * product + 42 * scores);
  EXPECT_DOUBLE_EQ(nanos(backward), 4 * product + 52 * scores);
}

// Without a mask there are twice as many operations, and written scores cost the same as masked ones.
TEST(Machine, AttentionWithoutAMaskIsOfWholeProducts) {
  Machine m = machine_of_levels();
  m.cube = {{1e9}, {1e9}};
  m.hbm_bandwidth = {1e9};
  const auto nanos = [&](auto op, bool causal) {
    op.batch = 2, op.seq = 64, op.kv_heads = 3, op.group = 1, op.head_dim = op.value_dim = 16;
    op.causal = causal;
    Instr instr;
    instr.op = op;
    instr.stream = StreamKind::kCube;
    return compute_cost(instr, Mesh{{{"a", 1}}}, m).nanos();
  };
  const double product = 2 * 2 * 3 * 64 * 64 * 16;
  EXPECT_DOUBLE_EQ(nanos(instr::Attention{}, false), 2 * product);
  EXPECT_DOUBLE_EQ(nanos(instr::AttentionGrad{}, false), 5 * product);
  EXPECT_DOUBLE_EQ(nanos(instr::AttentionStep{}, false), 2 * product);
  EXPECT_DOUBLE_EQ(nanos(instr::AttentionStepGrad{}, false), 5 * product);
  m.attention.half = {64};
  EXPECT_DOUBLE_EQ(nanos(instr::Attention{}, true), product * 2) << "64 of 64 + 64";
  EXPECT_DOUBLE_EQ(nanos(instr::Attention{}, false), 2 * product * 1.5) << "128 of 128 + 64";
  m.attention.half = {0};
  m.scores = {
      .forward = {8}, .backward = {9}, .multiple = {3}, .forward_apart = {42}, .backward_apart = {52}};
  EXPECT_DOUBLE_EQ(nanos(instr::Attention{}, false), nanos(instr::Attention{}, true));
  EXPECT_DOUBLE_EQ(nanos(instr::AttentionGrad{}, false), nanos(instr::AttentionGrad{}, true));
}

// The explained durations are the simulated ones, each with its numbers.
TEST(Explain, AddsUpAndNamesItsNumbers) {
  Job job = small_job("dp:2 tp:2 sp");
  job.supernode.machine = machine_of_levels();
  job.supernode.machine->cube.f32 = {1e12, Evidence::kDataSheet, "a table"};
  const Plan plan = compile(job).plan;
  const Topology topology = hosts_of(*job.supernode.machine, 4);
  Nanos explained{}, sum{};
  std::int64_t count = 0;
  const auto list = explain(plan, "train", job.supernode, topology, 1);
  for (const ExplainedInstrs& e : list) explained += e.each * e.count, count += e.count;
  const auto lasts = durations(plan, "train", job.supernode, topology, 1);
  for (const Nanos d : lasts) sum += d;
  EXPECT_EQ(explained, sum);
  EXPECT_EQ(count, std::ssize(lasts));
  EXPECT_TRUE(std::ranges::is_sorted(list, std::greater{}, [](const auto& e) { return e.each * e.count; }));
  const auto gemm = std::ranges::find_if(list, [](const auto& e) { return e.what.starts_with("Gemm"); });
  ASSERT_NE(gemm, list.end());
  EXPECT_NE(gemm->reckoning.find("1 TFLOP/s [data sheet: a table]"), std::string::npos) << gemm->reckoning;
  const auto gather = std::ranges::find_if(
      list, [](const auto& e) { return e.what.starts_with("Collective kind=all-gather"); });
  ASSERT_NE(gather, list.end());
  EXPECT_NE(gather->reckoning.find("level package"), std::string::npos) << gather->reckoning;
  EXPECT_EQ(gather->reckoning.find("summing"), std::string::npos)
      << "nothing is added: " << gather->reckoning;
  const auto scatter = std::ranges::find_if(
      list, [](const auto& e) { return e.what.starts_with("Collective kind=reduce-scatter"); });
  ASSERT_NE(scatter, list.end());
  EXPECT_NE(scatter->reckoning.find("summing: 3 bytes of HBM for each that arrives"), std::string::npos)
      << scatter->reckoning;
}

// Equal instructions in different kernels last differently. The exchanges of a bucket are explained as one
// exchange, and its part.
TEST(Explain, AddsUpWhereKernelsDoSeveral) {
  Job job = small_job("dp:4");
  become_gpt2(job);
  job.supernode.machine = machine_of_levels();
  job.supernode.machine->fused = true;
  const Plan plan = compile(job).plan;
  const Topology topology = hosts_of(*job.supernode.machine, 4);
  Nanos explained{}, sum{};
  const auto list = explain(plan, "train", job.supernode, topology, 1);
  for (const ExplainedInstrs& e : list) explained += e.each * e.count;
  for (const Nanos d : durations(plan, "train", job.supernode, topology, 1)) sum += d;
  EXPECT_EQ(explained, sum);
  EXPECT_TRUE(std::ranges::any_of(list, [](const auto& e) {
    return e.what.starts_with("Collective") && e.reckoning.find("exchange together") != std::string::npos;
  }));
}

}  // namespace
}  // namespace hyperrun::testing

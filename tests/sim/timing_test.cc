// Times calculated by hand: durations, streams, events, groups, exposed communication.
#include <gtest/gtest.h>

#include <limits>

#include "runtime/base/error.h"
#include "runtime/cost/duration.h"
#include "runtime/sim/simulate.h"
#include "tests/sim/programs.h"

namespace hyperrun::testing {
namespace {

using enum StreamKind;
using instr::CollectiveKind::kAllGather;
using instr::CollectiveKind::kAllReduce;
using instr::CollectiveKind::kAllToAll;
using instr::CollectiveKind::kReduceScatter;

SimResult run(const ProgramBuilder& builder, const SupernodeSpec& spec,
              const Topology& topology = Topology::one_host(1)) {
  return simulate(builder.plan(), "test", spec, topology);
}

std::vector<Span> spans(const SimResult& r, int device = 0) { return r.times(device).spans; }

TEST(Timing, AStreamIsInOrder) {
  const SimResult r =
      run(ProgramBuilder().compute(kCube, 100).compute(kCube, 50).compute(kCube, 8), slow_machine());
  EXPECT_EQ(spans(r), (std::vector<Span>{{0, 100}, {100, 150}, {150, 158}}));
  EXPECT_EQ(r.makespan, Nanos(158));
  EXPECT_EQ(r.matrix_flops, 158);
}

TEST(Timing, StreamsRunSideBySideUntilTheyWait) {
  const SimResult r = run(ProgramBuilder()
                              .compute(kCube, 100)
                              .compute(kVector, 30)
                              .compute(kVector, 20, {{kCube, 1}})
                              .compute(kCube, 10, {{kVector, 1}})
                              .compute(kCube, 40, {{kVector, 2}}),
                          slow_machine());
  EXPECT_EQ(spans(r), (std::vector<Span>{{0, 100}, {0, 30}, {100, 120}, {100, 110}, {120, 160}}));
  EXPECT_EQ(r.times(0).busy[0], Nanos(150));
  EXPECT_EQ(r.times(0).busy[1], Nanos(50));
  EXPECT_EQ(r.times(0).exposed, Nanos(0));
}

TEST(Timing, EveryInstructionIsLaunched) {
  SupernodeSpec spec = slow_machine();
  spec.launch_latency = Nanos(7);
  EXPECT_EQ(run(ProgramBuilder().compute(kCube, 100).compute(kCube, 50), spec).makespan,
            Nanos(7 + 100 + 7 + 50));
}

TEST(Timing, TheSlowerOfArithmeticAndMemoryCounts) {
  SupernodeSpec spec = slow_machine();
  spec.cube_flops = 4e9;
  spec.vector_flops = 2e9;
  Instr gemm;
  gemm.op = instr::Gemm{.m = 10, .n = 10, .k = 10};  // 2000 flops
  EXPECT_EQ(duration(gemm, Mesh{}, {}, machine_of(spec)), Nanos(500));
  gemm.stream = kVector;
  EXPECT_EQ(duration(gemm, Mesh{}, {}, machine_of(spec)), Nanos(1000));
  gemm.in = {{BufferId(0), Bytes(0), Bytes(1200)}};
  gemm.out = {{BufferId(1), Bytes(0), Bytes(400)}};
  EXPECT_EQ(duration(gemm, Mesh{}, {}, machine_of(spec)), Nanos(1600));
}

// Four devices, one host. 1000 floats are one-shot: alpha + 3 * 4000 bytes, each moved and reduced, which
// costs three bytes of HBM. 10,000 are direct: 2 alpha, 2 * 3/4 * 40,000 bytes moved, half of that reduced.
TEST(Timing, CollectivesCostWhatTheirAlgorithmDoes) {
  SupernodeSpec spec = slow_machine();
  spec.link_latency = Nanos(5);
  spec.launch_latency = Nanos(2);
  const auto lasts = [&](instr::CollectiveKind kind, std::int64_t inner, const Topology& topology) {
    return run(ProgramBuilder({{"dp", 4}}).collective(kind, inner), spec, topology).makespan.value;
  };
  const Topology one = Topology::one_host(4), four = Topology::uniform(4, 1);
  EXPECT_EQ(lasts(kAllReduce, 1000, one), 2 + 5 + 3 * 4000 * (1 + 3));
  EXPECT_EQ(lasts(kAllReduce, 10000, one), 2 + 2 * 5 + 60000 + 3 * 30000);
  EXPECT_EQ(lasts(kAllGather, 10000, one), 2 + 5 + 3 * 40000);
  EXPECT_EQ(lasts(kReduceScatter, 10000, one), 2 + 5 + 3 * 40000 * (1 + 3));
  // Expected by messages: a ring of three steps, halving and doubling in two steps each.
  EXPECT_EQ(lasts(kAllGather, 10000, four), 2 + 3 * 5 + 3 * 40000);
  EXPECT_EQ(lasts(kAllReduce, 10000, four), 2 + 4 * 5 + 60000 + 3 * 30000);
}

TEST(Timing, CommunicationIsExposedWhereNothingElseRuns) {
  SupernodeSpec spec = slow_machine();
  spec.hbm_bandwidth = 3e9;  // a reduced byte: 1 ns; all-reduce of 8 floats by two: 32 * 2 ns
  const SimResult r = run(ProgramBuilder({{"dp", 2}})
                              .compute(kCube, 10)
                              .collective(kAllReduce, 8, {{kCube, 1}})   // 10 to 74
                              .compute(kCube, 20)                        // 10 to 30
                              .compute(kVector, 30)                      // 0 to 30
                              .compute(kVector, 10, {{kCube, 2}})        // 30 to 40
                              .compute(kCube, 6, {{kComm, 1}})           // 74 to 80
                              .collective(kAllReduce, 8, {{kCube, 3}}),  // 80 to 144
                          spec, Topology::one_host(2));
  EXPECT_EQ(spans(r),
            (std::vector<Span>{{0, 10}, {10, 74}, {10, 30}, {0, 30}, {30, 40}, {74, 80}, {80, 144}}));
  EXPECT_EQ(r.times(1).exposed, Nanos((74 - 40) + (144 - 80)));
  EXPECT_EQ(r.times(1).busy[static_cast<std::size_t>(kComm)], Nanos(128));
}

// Devices 0 and 1 share a host, 2 is alone: along dp, {0, 2} meet by messages, {1, 3} as well, but tp
// {0, 1} on one host is faster than {2, 3} over two.
TEST(Timing, AGroupWaitsForItsLastMember) {
  SupernodeSpec spec = slow_machine();
  spec.hbm_bandwidth = 3e9;
  spec.link_latency = Nanos(100);
  const ProgramBuilder p =
      ProgramBuilder({{"dp", 2}, {"tp", 2}})
          .collective(kAllGather, {1}, 4096)  // 16 KiB; direct or a ring: alpha + 16384 both
          .collective(kAllReduce, {1}, 4096)  // direct: 2 alpha, between two hosts pairwise: 2 alpha
          .collective(kAllReduce, {1}, 16)    // one-shot 100 + 64 * 2; pairwise 200 + 64 + 32
          .collective(kAllReduce, {0}, 16);   // by messages for all: 296
  const Topology topology{{0, 0, 1, 2}};
  const SimResult r = simulate(p.plan(), "test", spec, topology);
  const std::int64_t fast = spans(r, 0)[2].end, slow = spans(r, 2)[2].end;
  EXPECT_EQ(slow - fast, 296 - 228);
  EXPECT_EQ(spans(r, 0)[3], (Span{fast, slow + 296})) << "arrives early, leaves with the others";
  EXPECT_EQ(spans(r, 2)[3], (Span{slow, slow + 296}));
  EXPECT_EQ(r.classes.size(), 2u);
  EXPECT_EQ(r.class_of, (std::vector<int>{0, 0, 1, 1}));
}

// Device 1 computes 300, then both exchange 64 bytes each for 64 ns, then 0 waits for its vector stream.
TEST(Timing, WaitingForOthersIsABubble) {
  const Plan fast =
      ProgramBuilder({{"dp", 2}}).compute(kCube, 100).collective(kAllGather, 16, {{kCube, 1}}).plan();
  Plan plan{fast.mesh, {0}, {fast.roles[0], fast.roles[0]}};
  std::get<instr::Gemm>(plan.roles[1].programs[0].instrs[0].op).k = 150;
  const SimResult r = simulate(plan, "test", slow_machine(), Topology::one_host(2));
  EXPECT_EQ(r.makespan, Nanos(364));
  EXPECT_EQ(r.breakdown(0),
            (Breakdown{.compute = Nanos(100), .communication = Nanos(64), .bubble = Nanos(200)}));
  EXPECT_EQ(r.breakdown(1), (Breakdown{.compute = Nanos(300), .communication = Nanos(64)}));
}

TEST(Timing, NothingTakesNoTime) {
  const SimResult r = run(ProgramBuilder(), slow_machine());
  EXPECT_EQ(r.makespan, Nanos(0));
  EXPECT_TRUE(r.times(0).spans.empty());
}

TEST(Timing, AProgramThatCannotEndIsRefused) {
  const ProgramBuilder p =
      ProgramBuilder().compute(kCube, 2, {{kVector, 1}}).compute(kVector, 2, {{kCube, 1}});
  try {
    run(p, slow_machine());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInternal);
    EXPECT_NE(std::string(e.what()).find("never comes to instruction 0"), std::string::npos) << e.what();
  }
}

TEST(Timing, ImpossibleRatesAreRefusedByName) {
  const ProgramBuilder p = ProgramBuilder().compute(kCube, 2);
  const auto refused = [&](auto change) -> std::string {
    SupernodeSpec spec = slow_machine();
    change(spec);
    try {
      run(p, spec);
    } catch (const Error& e) {
      return e.code() == Code::kBadValue ? e.place() : e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refused([](auto& s) { s.cube_flops = 0; }), "supernode.cube_flops");
  EXPECT_EQ(refused([](auto& s) { s.vector_flops = -1e9; }), "supernode.vector_flops");
  EXPECT_EQ(refused([](auto& s) { s.hbm_bandwidth = std::numeric_limits<double>::quiet_NaN(); }),
            "supernode.hbm_bandwidth");
  EXPECT_EQ(refused([](auto& s) { s.link_bandwidth = std::numeric_limits<double>::infinity(); }),
            "supernode.link_bandwidth");
  EXPECT_EQ(refused([](auto& s) { s.link_latency = Nanos(-1); }), "supernode.link_latency");
  EXPECT_EQ(refused([](auto& s) { s.launch_latency = Nanos(INT64_MAX); }), "supernode.launch_latency");
  EXPECT_EQ(refused([](auto&) {}), "accepted");
  EXPECT_THROW(run(ProgramBuilder().compute(kCube, INT64_MAX / 2), slow_machine()), Error) << "300 years";
  EXPECT_THROW(run(p, slow_machine(), Topology::one_host(2)), Error);
}

}  // namespace
}  // namespace hyperrun::testing

// Programs with collectives and their products in tiles: which instructions are cut, which collectives are
// masked, and what stays whole.
#include "runtime/mpmd/collective_tiles.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/ir/row_blocks.h"
#include "runtime/mpmd/row_chains.h"
#include "runtime/sim/simulate.h"
#include "tests/mpmd/tile_runs.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

Job tiled_job(const std::string& parallel, std::int32_t tiles) {
  Job job = small_job(parallel);
  job.parallel.tiles = tiles;
  return job;
}

// The number of tiles by node name.
std::map<std::string, int> tiles_in(const Program& program) {
  std::map<std::string, int> tiles;
  for (const Instr& i : program.instrs)
    if (i.in.empty() || !tile_of(i).whole()) {
      const std::string& origin = program.origins[static_cast<std::size_t>(i.origin)];
      ++tiles[origin.substr(0, origin.rfind('['))];
    }
  return tiles;
}

TEST(CollectiveTiles, CoverAllBetweenTwoAttentions) {
  const auto tiles = tiles_in(train(tiled_job("tp:4 sp", 4)));
  for (const char* node : {"layers.0.attention.wo.product", "layers.0.ffn.gate.product",
                           "layers.0.ffn.up.product", "layers.0.ffn.swiglu", "layers.0.ffn.down.product",
                           "layers.0.ffn.norm", "layers.0.ffn.down.product.grad", "layers.0.ffn.swiglu.grad",
                           "head.product", "layers.1.attention.wq.product"})
    EXPECT_EQ(tiles.contains(node) ? tiles.at(node) : 0, 4) << node;
  for (const char* node : {"layers.0.attention.core", "layers.0.ffn.down.product.grad2"})
    EXPECT_FALSE(tiles.contains(node)) << node;
}

// Bytes on the wire and operations of all tiles add up to those of the whole.
TEST(CollectiveTiles, AddUpToTheWhole) {
  for (const char* layout : {"tp:4", "tp:4 sp", "tpx:2 tpy:2", "cp:4"}) {
    const auto sums = [&](std::int32_t tiles) { return flops_and_wire(train(tiled_job(layout, tiles))); };
    EXPECT_EQ(sums(1), sums(4)) << layout;
  }
}

// Rows gathered from four devices lie in four blocks, and a tile has a part of each. An all-reduce has its
// rows in one block.
TEST(CollectiveTiles, RowsLieInBlocksOfDevices) {
  for (const auto& [layout, blocks] : {std::pair("tp:4 sp", 4), std::pair("tp:4", 1)}) {
    Job job = tiled_job(layout, 4);
    job.training.micro_batches = job.training.batch;
    std::int64_t products = 0;
    for (const Instr& i : train(job).instrs) {
      if (tile_of(i).whole() || !std::holds_alternative<instr::Gemm>(i.op)) continue;
      EXPECT_EQ(tile_of(i).blocks, blocks);
      EXPECT_EQ(tile_of(i).rows * blocks, job.model.sequence);
      EXPECT_EQ(std::get<instr::Gemm>(i.op).m, job.model.sequence / 4);
      ++products;
    }
    EXPECT_GT(products, 0) << layout;
  }
}

// An instruction waits only for its own tile: leaving out any one wait causes a race.
TEST(CollectiveTiles, EveryWaitIsNeeded) {
  for (const char* layout : {"tp:4", "tp:2 sp", "tpx:2 tpy:2", "cp:2"}) {
    Job job = tiled_job(layout, 3);
    job.model.layers = 1;
    EXPECT_GT(expect_every_wait_is_needed(train(job)), 40) << layout;
  }
}

// Computing takes several times as long as sending.
Job slow_links(const std::string& parallel) { return with_slow_links(tiled_job(parallel, 1), 1e8); }

struct Simulated {
  bool cut = false;
  double exposed = 0;  // ns of collectives
  double step = 0;     // ns
};

Simulated simulated(Job job, std::int32_t tiles) {
  job.parallel.tiles = tiles;
  const Compiled compiled = compile(job);
  const SimResult r =
      simulate(compiled.plan, "train", job.supernode, Topology::one_host(job.supernode.devices));
  const auto& tiles_of_chains = compiled.moves[0].chunks.tiles;
  Simulated s{std::ranges::any_of(tiles_of_chains, [](auto t) { return t > 1; }), 0,
              static_cast<double>(r.makespan.value)};
  const InvocationStats stats = r.stats(0);
  for (const auto& u : stats.under_way) s.exposed += static_cast<double>(u.exposed.value);
  return s;
}

TEST(CollectiveTiles, HideCollectives) {
  for (const char* layout : {"tp:4", "tp:4 sp", "tpx:2 tpy:2"}) {
    const Job job = slow_links(layout);
    const Simulated whole = simulated(job, 1), cut = simulated(job, 0);
    EXPECT_TRUE(cut.cut) << layout;
    EXPECT_LT(cut.exposed, 0.5 * whole.exposed) << layout;
    EXPECT_LT(cut.step, 0.95 * whole.step) << layout;
  }
}

TEST(CollectiveTiles, AreMadeOnlyWhereTheyPay) {
  for (const char* layout : {"tp:4", "tp:4 sp", "dp:2 tp:2 sp zero1", "tpx:2 tpy:2", "cp:4", "pp:2 tp:2"}) {
    Job job = slow_links(layout);
    for (const std::int64_t launch : {10, 30'000, 1'000'000}) {
      job.supernode.launch_latency = Nanos(launch);
      const Simulated whole = simulated(job, 1), own = simulated(job, 0);
      EXPECT_LE(own.step, whole.step) << layout << " launch " << launch;
      if (launch == 1'000'000) {
        EXPECT_FALSE(own.cut) << layout;
      }
    }
  }
}

// In the backward pass a weight's gradient is computed while the gradient of the product's input is reduced.
// If it takes as long, the reduction is masked already and nothing is cut.
TEST(CollectiveTiles, LeaveMaskedCollectivesWhole) {
  Program program;
  program.mesh = Mesh{{{"tp", 4}}};
  const auto buffer = [&](std::int64_t bytes) {
    Buffer b;
    b.name = std::to_string(program.buffers.size());
    b.bytes = Bytes(bytes);
    program.buffers.push_back(b);
    return Operand{BufferId(std::ssize(program.buffers) - 1), Bytes(0), Bytes(bytes), DType::kF32};
  };
  program.origins = {"product", "reduce", "weight"};
  constexpr std::int64_t kN = 512;
  const Operand dy = buffer(4 * kN * kN), w = buffer(4 * kN * kN), x = buffer(4 * kN * kN);
  const Operand dx = buffer(4 * kN * kN), dw = buffer(4 * kN * kN);
  const auto add = [&](InstrOp op, StreamKind stream, std::vector<Operand> in, const Operand& out) {
    Instr i;
    i.op = std::move(op);
    i.stream = stream;
    i.in = std::move(in);
    i.out = {out};
    i.origin = static_cast<std::int32_t>(program.instrs.size());
    program.instrs.push_back(std::move(i));
  };
  add(instr::Gemm{.m = kN, .n = kN, .k = kN}, StreamKind::kCube, {dy, w}, dx);
  instr::Collective reduce{.axes = {0}};
  reduce.inner = kN * kN;
  add(reduce, StreamKind::kComm, {dx}, dx);
  add(instr::Gemm{.trans_a = true, .m = kN, .n = kN, .k = kN}, StreamKind::kCube, {dy, x}, dw);
  SupernodeSpec spec;
  spec.devices = 4;
  spec.cube_flops = 1e11;  // 2.7 ms per product
  spec.hbm_bandwidth = 1e13;
  spec.launch_latency = Nanos(100);
  spec.link_latency = Nanos(100);
  spec.link_bandwidth = 1e9;  // 1.6 ms per all-reduce
  const auto cut = [&] {
    const CollectiveTiling c =
        plan_collective_tiles(program, 0, machine_of(spec), 0, Bytes(std::int64_t{1} << 30));
    return !c.tiles.empty() && c.tiles.front() > 1;
  };
  ASSERT_EQ(row_chains(program).size(), 1U);
  EXPECT_EQ(row_chains(program).front().end, 3) << "what may hide it belongs to the stretch";
  EXPECT_FALSE(cut()) << "the weight's gradient hides it";
  program.instrs.pop_back();
  program.origins.pop_back();
  EXPECT_TRUE(cut()) << "nothing hides it";
}

// Tiles would raise the live peak above the budget.
TEST(CollectiveTiles, RespectTheBudget) {
  Job job = slow_links("tp:4 sp");
  job.parallel.tiles = 1;
  job.supernode.hbm = compile(job).plan.peak();
  job.parallel.tiles = 0;
  EXPECT_LE(compile(job).plan.peak(), job.supernode.hbm);
}

TEST(CollectiveTiles, AreRefusedWhereNothingCanBeCut) {
  try {
    (void)compile(tiled_job("dp:2", 4));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kBadLayout);
    EXPECT_EQ(e.place(), "parallel.tiles");
  }
  EXPECT_NO_THROW((void)compile(tiled_job("dp:2", 0)));
}

// Decisions made for one machine give the same Program when the compiler reuses them for another.
TEST(CollectiveTiles, AreReusedAsDecided) {
  Job job = slow_links("tp:4 sp");
  job.parallel.tiles = 0;
  const Compiled first = compile(job);
  ASSERT_FALSE(first.moves[0].chunks.tiles.empty());
  Job other = job;
  other.supernode.cube_flops /= 50;
  other.supernode.link_bandwidth *= 10;
  EXPECT_EQ(compile(other, &first.moves).plan, first.plan);
}

}  // namespace
}  // namespace hyperrun::testing

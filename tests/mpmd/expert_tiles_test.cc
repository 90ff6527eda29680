// Programs with experts in tiles: dependencies, masked exchanges, and Programs that cannot be cut.
#include "runtime/mpmd/expert_tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/events.h"
#include "runtime/compile/place.h"
#include "runtime/mpmd/windows.h"
#include "runtime/sim/simulate.h"
#include "tests/mpmd/tile_runs.h"
#include "tests/support/faults.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;

Job experts_job(const std::string& parallel, std::int32_t tiles) {
  Job job = small_job(parallel);
  job.model.experts = {.count = 8, .choices = 2, .ffn = 32, .shared = 1};
  job.parallel.tiles = tiles;
  return job;
}

std::int64_t tiles_of(const Program& program, const auto& wanted) {
  return std::ranges::count_if(program.instrs,
                               [&](const Instr& i) { return !tile_of(i).whole() && wanted(i.op); });
}

bool is_exchange(const InstrOp& op) {
  const auto* c = std::get_if<instr::Collective>(&op);
  return c != nullptr && c->kind == instr::CollectiveKind::kAllToAllV;
}

TEST(ExpertTiles, CoverAllThatTouchesRowsOfExperts) {
  const Program whole = train(experts_job("ep:4", 1)), cut = train(experts_job("ep:4", 4));
  EXPECT_EQ(tiles_of(whole, [](const auto&) { return true; }), 0);
  std::int64_t others = 0, of_rows = 0;
  for (const Instr& i : whole.instrs) {
    const bool rows =
        is_exchange(i.op) || std::holds_alternative<instr::Regroup>(i.op) ||
        std::holds_alternative<instr::GroupedGemm>(i.op) ||
        std::holds_alternative<instr::GroupedOuter>(i.op) ||
        (std::holds_alternative<instr::SwiGlu>(i.op) && std::get<instr::SwiGlu>(i.op).groups > 0) ||
        (std::holds_alternative<instr::SwiGluGrad>(i.op) && std::get<instr::SwiGluGrad>(i.op).groups > 0);
    ++(rows ? of_rows : others);
  }
  // Each of two layers has four exchanges, four sorts, three products with two gradients each, and two
  // activations.
  EXPECT_EQ(of_rows, 2 * (4 + 4 + 3 + 6 + 2));
  EXPECT_EQ(std::ssize(cut.instrs), others + 4 * of_rows);
  EXPECT_EQ(tiles_of(cut, is_exchange), 4 * 2 * 4);
}

// Bytes on the wire and operations of all tiles add up to those of the whole.
TEST(ExpertTiles, AddUpToTheWhole) {
  const Program whole = train(experts_job("ep:4", 1)), cut = train(experts_job("ep:4", 3));
  EXPECT_EQ(flops_and_wire(whole), flops_and_wire(cut));
}

// An instruction waits only for its own tile: leaving out any one wait causes a race. So no wait is
// superfluous, and the products of one tile do not wait for the exchange of the next.
TEST(ExpertTiles, EveryWaitIsNeeded) {
  for (const char* layout : {"ep:4", "ep:2 tp:2 sp", "dp:2 ep:2 zero1"}) {
    Job job = experts_job(layout, 3);
    job.model.layers = 1;
    EXPECT_GT(expect_every_wait_is_needed(train(job)), 60) << layout;
  }
}

// A write of all rows between tiles is a race if the tiles do not wait for it.
TEST(ExpertTiles, RaceWithAWriteOfAllRows) {
  Job job = experts_job("ep:4", 2);
  job.model.layers = 1;
  Program program = train(job);
  for (Instr& instr : program.instrs)
    if (is_exchange(instr.op) && tile_of(instr).index == 1) {
      instr.in[0].tile = instr.out[0].tile = {};
      break;
    }
  EXPECT_THAT(fault(program), HasSubstr("race"));
}

// Computing takes three times as long as sending its rows.
Job slow_links() { return with_slow_links(experts_job("ep:4", 1), 3e7); }

struct Simulated {
  std::int32_t tiles = 1;
  double masked = 0;  // share of the exchanges' time
  double step = 0;    // ns
};

Simulated simulated(Job job, std::int32_t tiles) {
  job.parallel.tiles = tiles;
  const Compiled compiled = compile(job);
  const SimResult r = simulate(compiled.plan, "train", job.supernode, Topology::one_host(4));
  Simulated s{compiled.moves[0].tiling.tiles, 0, static_cast<double>(r.makespan.value)};
  const InvocationStats stats = r.stats(0);
  for (std::size_t k = 0; k < stats.traffic.size(); ++k)
    if (stats.traffic[k].kind.collective == "all-to-all-v")
      s.masked = 1 - static_cast<double>(stats.under_way[k].exposed.value) /
                         static_cast<double>(stats.under_way[k].time.value);
  return s;
}

TEST(ExpertTiles, HideExchanges) {
  const Job job = slow_links();
  const Simulated whole = simulated(job, 1), cut = simulated(job, 4);
  EXPECT_LT(whole.masked, 0.4);  // by gradients of weights
  EXPECT_GT(cut.masked, 0.9);
  EXPECT_LT(cut.step, 0.85 * whole.step);
}

// The estimate ignores offsets of buffers, which makes up to 2 % of a step.
TEST(ExpertTiles, AreAsManyAsPay) {
  Job job = slow_links();
  for (const std::int64_t launch : {10, 1'000'000}) {
    job.supernode.launch_latency = Nanos(launch);
    const Simulated own = simulated(job, 0);
    for (const std::int32_t tiles : {1, 2, 4, 8})
      EXPECT_LT(own.step, 1.02 * simulated(job, tiles).step) << tiles << " in place of " << own.tiles;
    EXPECT_EQ(own.tiles >= 4, launch == 10) << own.tiles;
  }
}

TEST(ExpertTiles, AreRefusedWhereNoRowsGoBetweenDevices) {
  for (const char* layout : {"dp:2", "dp:4"}) {
    try {
      (void)compile(experts_job(layout, 4));
      ADD_FAILURE() << layout;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kBadLayout);
      EXPECT_EQ(e.place(), "parallel.tiles");
    }
    EXPECT_NO_THROW((void)compile(experts_job(layout, 0))) << "the compiler may take one";
  }
}

// No instruction moves past the begin of a micro-batch or a message between stages, and windows do not
// overlap.
TEST(ExpertTiles, StayInTheWindowsOfTheirPass) {
  for (const char* layout : {"ep:4", "pp:2 ep:2"}) {
    Job job = experts_job(layout, 2);
    job.training.micro_batches = 2;
    for (const Role& role : compile(job).plan.roles) {
      const Program& p = role.program("train");
      const auto after = dependencies(p);
      std::int32_t end = 0;
      const std::vector<Window> list = windows(p, after);
      EXPECT_GE(list.size(), 4U);
      for (const Window& w : list) {
        EXPECT_GE(w.begin, end);
        EXPECT_LT(w.begin, w.end);
        end = w.end;
        for (std::int32_t i = w.begin; i < w.end; ++i) {
          const Instr& instr = p.instrs[static_cast<std::size_t>(i)];
          EXPECT_FALSE(std::holds_alternative<instr::LoadBatch>(instr.op));
          EXPECT_NE(instr.stream, StreamKind::kSend);
          EXPECT_NE(instr.stream, StreamKind::kRecv);
        }
      }
    }
  }
}

// Decisions made for one machine give the same Program when the compiler reuses them for another.
TEST(ExpertTiles, AreReusedAsDecided) {
  Job job = experts_job("ep:4", 4);
  const Compiled first = compile(job);
  Job other = job;
  other.supernode.cube_flops /= 50;
  other.supernode.link_bandwidth *= 10;
  EXPECT_EQ(compile(other, &first.moves).plan, first.plan);
}

}  // namespace
}  // namespace hyperrun::testing

#include "tests/mpmd/tile_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "tests/support/faults.h"

namespace hyperrun::testing {

Job with_slow_links(Job job, double link) {
  job.supernode.cube_flops = 1e9;
  job.supernode.vector_flops = 1e10;
  job.supernode.hbm_bandwidth = 1e12;
  job.supernode.link_bandwidth = link;
  job.supernode.link_latency = Nanos(10);
  job.supernode.launch_latency = Nanos(10);
  return job;
}

Program train(const Job& job) { return compile(job).plan.roles[0].program("train"); }

std::pair<std::int64_t, std::int64_t> flops_and_wire(const Program& program) {
  std::int64_t flops = 0, wire = 0;
  for (const Instr& i : program.instrs)
    flops += work(i, program.mesh).flops.value, wire += work(i, program.mesh).wire.value;
  return {flops, wire};
}

int expect_every_wait_is_needed(Program program) {
  EXPECT_EQ(fault(program), "");
  int waits = 0;
  for (Instr& instr : program.instrs)
    for (std::size_t w = 0; w < instr.waits.size(); ++w, ++waits) {
      const Event dropped = instr.waits[w];
      instr.waits.erase(instr.waits.begin() + static_cast<std::ptrdiff_t>(w));
      EXPECT_THAT(fault(program), ::testing::HasSubstr("race"))
          << program.origins[static_cast<std::size_t>(instr.origin)] << " after " << name(dropped.stream)
          << " " << dropped.seq;
      instr.waits.insert(instr.waits.begin() + static_cast<std::ptrdiff_t>(w), dropped);
    }
  return waits;
}

void expect_same(const RunResult& whole, const RunResult& cut, const std::string& what, double allowed) {
  ASSERT_EQ(whole.losses.size(), cut.losses.size());
  for (std::size_t s = 0; s < whole.losses.size(); ++s) {
    EXPECT_NEAR(whole.losses[s], cut.losses[s], allowed * whole.losses[s]) << what << " step " << s;
    EXPECT_NEAR(whole.grad_norms[s], cut.grad_norms[s], 10 * allowed * whole.grad_norms[s])
        << what << " step " << s;
  }
  EXPECT_TRUE(cut.strays.empty()) << what;
}

Plan expect_same_in_half_of_hbm(Job job) {
  const Bytes all = compile(job).plan.peak();
  const RunResult in_hbm = run_in_process(job);
  job.memory.policy = "hyperoffload";
  job.supernode.pool = Bytes(std::int64_t{64} << 20);
  job.supernode.hbm = all / 2;
  Plan plan = compile(job).plan;
  EXPECT_LE(plan.peak(), all / 2);
  const RunResult beyond = run_in_process(job);
  EXPECT_EQ(in_hbm.losses, beyond.losses);
  EXPECT_EQ(in_hbm.weights, beyond.weights);
  return plan;
}

void expect_as_planned(Job job,
                       const std::function<void(const Traffic&, const Traffic&, const std::string&)>& check) {
  const Plan plan = compile(job).plan;
  const RunResult cut = run_in_process(job);
  job.parallel.tiles = 1;
  const RunResult whole = run_in_process(job);
  for (std::size_t d = 0; d < cut.stats.size(); ++d) {
    EXPECT_EQ(cut.high_water[d], plan.peak());
    const auto& of_cut = cut.stats[d].traffic;
    ASSERT_EQ(of_cut.size(), whole.stats[d].traffic.size());
    for (const Traffic& t : whole.stats[d].traffic) {
      const auto same = std::ranges::find(of_cut, t.kind, &Traffic::kind);
      ASSERT_NE(same, of_cut.end());
      check(t, *same, t.kind.collective);
    }
  }
}

}  // namespace hyperrun::testing

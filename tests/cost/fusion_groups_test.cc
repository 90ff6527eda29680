// Fusion groups and their costs.
#include "runtime/cost/fusion_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/compile/compile.h"
#include "runtime/cost/cost.h"
#include "runtime/sim/simulate.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

Job gpt(const std::string& layout) {
  Job job = small_job(layout);
  become_gpt2(job);
  job.training.micro_batches = 2;
  job.training.recompute = {{"full", 0, job.model.layers - 1}};
  return job;
}

class Fused : public ::testing::Test {
 protected:
  Fused() : plan_(compile(gpt("tp:2 bf16")).plan), groups_(fusion_groups_of(program())) {}

  const Program& program() const { return plan_.roles[0].program("train"); }

  std::size_t index(const std::string& origin) const {
    for (std::size_t i = 0; i < program().instrs.size(); ++i)
      if (origin_of(i) == origin) return i;
    ADD_FAILURE() << origin;
    return 0;
  }
  const std::string& origin_of(std::size_t i) const {
    return program().origins[static_cast<std::size_t>(program().instrs[i].origin)];
  }
  std::vector<std::string> with(const std::string& origin) const {
    std::vector<std::string> list;
    for (const std::int32_t i : groups_[index(origin)])
      list.push_back(origin_of(static_cast<std::size_t>(i)));
    return list;
  }
  std::vector<const Instr*> kernel(const std::string& origin) const {
    std::vector<const Instr*> list;
    for (const std::int32_t i : groups_[index(origin)])
      list.push_back(&program().instrs[static_cast<std::size_t>(i)]);
    return list;
  }

  Plan plan_;
  FusionGroups groups_;
};

TEST_F(Fused, QueriesKeysAndValuesAreOneProduct) {
  const std::string layer = "layers.1.attention.";
  for (const char* what : {".product#1", ".bias.add#1", ".product.again#0", ".bias.add.again#0"})
    EXPECT_THAT(with(layer + "wk" + what),
                ElementsAre(layer + "wq" + what, layer + "wk" + what, layer + "wv" + what));
  for (const char* what : {".product.grad#0", ".product.grad2#1", ".bias.add.grad#1"})
    EXPECT_THAT(with(layer + "wk" + what),
                UnorderedElementsAre(layer + "wq" + what, layer + "wk" + what, layer + "wv" + what));
  EXPECT_THAT(with(layer + "wo.product#0"), ElementsAre(layer + "wo.product#0"));
}

// A Program that computes x w1, x w2, and x w1 once more.
TEST(FusedProducts, RepetitionsAreGroupsOfTheirOwn) {
  Program p;
  p.buffers.resize(6);
  const auto operand = [](int buffer) { return Operand{BufferId(buffer), Bytes(0), Bytes(64)}; };
  p.instrs.push_back(
      {.op = instr::Fill{.n = 16}, .stream = StreamKind::kVector, .out = {operand(0)}, .seq = 1});
  for (int i = 0; i < 3; ++i)
    p.instrs.push_back({.op = instr::Gemm{.m = 4, .n = 4, .k = 4},
                        .in = {operand(0), operand(1 + i % 2)},
                        .out = {operand(3 + i)},
                        .seq = i + 1});
  const FusionGroups groups = fusion_groups_of(p);
  EXPECT_THAT(groups[1], ElementsAre(1, 2));
  EXPECT_THAT(groups[3], ElementsAre(3));
}

TEST_F(Fused, ABiasIsChainedWithTheNextInstruction) {
  EXPECT_THAT(with("layers.0.ffn.gelu#0"), ElementsAre("layers.0.ffn.up.bias.add#0", "layers.0.ffn.gelu#0"));
  EXPECT_THAT(with("layers.0.attention.wo.bias.add#1"),
              ElementsAre("layers.0.attention.add#1", "layers.0.attention.wo.bias.add#1"));
  EXPECT_THAT(with("layers.0.ffn.norm#0"),
              ElementsAre("layers.0.ffn.norm.sums#0", "layers.0.ffn.norm.squares#0", "layers.0.ffn.norm#0"));
}

TEST_F(Fused, WeightsAndGradientsLieInBuckets) {
  const std::size_t weights = 2 * 16 + 4;
  EXPECT_EQ(with("layers.0.attention.wq.cast").size(), weights);
  EXPECT_EQ(with("layers.1.attention.wq.adamw").size(), weights);
}

// With fused kernels all gradients are exchanged together, with the latency of one collective.
TEST(FusedExchange, IsOfAllGradientsAtOnce) {
  Job job = gpt("dp:4");
  Machine m = machine_of(job.supernode);
  m.levels[0].latency = {1e9};
  const Plan plan = compile(job).plan;
  const Program& program = plan.roles[0].program("train");
  const auto time_of_gradients = [&](bool fused) {
    m.fused = fused;
    job.supernode.machine = m;
    const auto lasts = durations(plan, "train", job.supernode, Topology::one_host(4), 0);
    double sum = 0;
    for (std::size_t i = 0; i < lasts.size(); ++i) {
      const auto* c = std::get_if<instr::Collective>(&program.instrs[i].op);
      if (c != nullptr && c->kind == instr::CollectiveKind::kAllReduce &&
          program.instrs[i].pass == Pass::kUpdate)
        sum += static_cast<double>(lasts[i].value) / 1e9;
    }
    return sum;
  };
  EXPECT_NEAR(time_of_gradients(true), 2, 0.1);
  EXPECT_GT(time_of_gradients(false), 20);
}

TEST_F(Fused, EveryInstructionIsInOneGroup) {
  std::multiset<std::int32_t> seen;
  for (std::size_t i = 0; i < program().instrs.size(); ++i) {
    const auto& members = groups_[i];
    EXPECT_EQ(std::ranges::count(members, static_cast<std::int32_t>(i)), 1) << i;
    if (members.front() == static_cast<std::int32_t>(i)) seen.insert(members.begin(), members.end());
  }
  EXPECT_EQ(seen.size(), program().instrs.size());
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), program().instrs.size());
}

// 128 positions of width 64, two bytes each. A device has half of the width in attention.
TEST_F(Fused, IntermediateResultsAreNotRead) {
  const Machine m = machine_of(gpt("tp:2 bf16").supernode);
  const auto bytes = [&](const std::string& origin) {
    return compute_cost(kernel(origin), plan_.mesh, m).bytes;
  };
  const double rows = 4 * 32, wide = rows * 64 * 2;
  EXPECT_EQ(bytes("layers.0.ffn.gelu#0"), 2 * wide + 2 * 64) << "the product's result, the bias; in place";
  EXPECT_EQ(bytes("layers.0.attention.add#0"), 3 * wide + 2 * 64) << "two are added, and the bias";
  EXPECT_EQ(bytes("layers.0.ffn.norm#0"), 2 * wide + 2 * 64 * 2 + 2 * rows * 4) << "sums are written";
  EXPECT_EQ(bytes("layers.0.attention.wq.product#0"), wide + 3 * (64 * 32 * 2 + rows * 32 * 2))
      << "the operand is read once";
}

// Three products side by side count as one that is three times as wide, or as deep if they share a result.
TEST_F(Fused, ProductsAreCutAsOne) {
  Machine m = machine_of(gpt("tp:2 bf16").supernode);
  m.tiles = {{4}, {64}, {64}};
  m.products = {{1}, {32}};
  const auto cost = [&](const std::string& origin) { return compute_cost(kernel(origin), plan_.mesh, m); };
  const ComputeCost forward = cost("layers.0.attention.wq.product#0");
  EXPECT_EQ(forward.flops, 2.0 * 128 * 96 * 64);
  EXPECT_EQ(forward.tiling.share, 0.75) << "2 x 2 tiles, of which half of the columns stand out by half";
  EXPECT_EQ(forward.depth, 64.0 / (64 + 32));
  EXPECT_EQ(cost("layers.0.attention.wq.product.grad#0").depth, 96.0 / (96 + 32));
}

// The instructions of a kernel share its time, its launch and its feeding.
TEST_F(Fused, LastsAsLongAsItsGroups) {
  Job job = gpt("tp:2 bf16");
  Machine m = machine_of(job.supernode);
  m.launch_cube = m.launch_vector = {1e6};
  const auto total = [&](bool fused, double feeding) {
    m.fused = fused;
    m.feeder.forward = m.feeder.backward = {feeding};
    m.feeder.in_order = true;
    job.supernode.machine = m;
    return simulate(plan_, "train", job.supernode, Topology::one_host(2)).makespan;
  };
  std::int64_t computing = 0, kernels = 0, feeding = 0;
  for (std::size_t i = 0; i < program().instrs.size(); ++i) {
    const bool first = groups_[i].front() == static_cast<std::int32_t>(i);
    const StreamKind stream = program().instrs[i].stream;
    if (stream == StreamKind::kCube || stream == StreamKind::kVector) ++computing, kernels += first ? 1 : 0;
    feeding += first ? 1 : 0;
  }
  ASSERT_LT(kernels, computing);
  const auto saved = total(false, 0) - total(true, 0);
  EXPECT_GE(saved.value, (computing - kernels) * 1'000'000);
  EXPECT_LT(saved.value, (computing - kernels) * 1'010'000) << "and some bytes";
  EXPECT_NEAR(static_cast<double>(total(true, 50e6).value), static_cast<double>(feeding) * 50e6,
              0.02 * static_cast<double>(feeding) * 50e6);
}

}  // namespace
}  // namespace hyperrun::testing

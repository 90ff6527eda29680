// Shares of the peak by shape: exact ones, and those between.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/compile/compile.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/kernel_costs.h"
#include "runtime/cost/kernel_shape.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

KernelShape product(double rows, double in, double out, KernelPass pass = KernelPass::kForward) {
  return {KernelKind::kProduct, pass, {rows, in, out}};
}

KernelTable table_of(std::vector<KernelShare> rows) { return {std::move(rows), "t.csv", "s"}; }

KernelTable products() {
  return table_of({{product(0, 0, 0), true, 0.5},
                   {product(64, 64, 64), false, 0.2},
                   {product(128, 64, 64), false, 0.3},
                   {product(512, 512, 512), false, 0.9}});
}

double time_of(const KernelTable& table, const KernelShape& shape) {
  return work(shape) / table.share(shape).value();
}

TEST(KernelTable, HasWhatWasMeasured) {
  EXPECT_EQ(products().share(product(64, 64, 64)), 0.2);
  EXPECT_EQ(products().share(product(512, 512, 512)), 0.9);
}

TEST(KernelTable, SaysNothingAboutKernelsThatItDoesNotHave) {
  EXPECT_EQ(products().share(product(64, 64, 64, KernelPass::kWeightGradient)), std::nullopt);
  EXPECT_EQ(KernelTable().share(product(64, 64, 64)), std::nullopt);
  const KernelTable without_any = table_of({{product(64, 64, 64), false, 0.2}});
  EXPECT_EQ(without_any.share(product(65, 64, 64)), std::nullopt);
}

// The product of 64 x 64 x 64 is slow. One that is hardly larger takes no less time; by the general share it
// would.
TEST(KernelTable, ALargerShapeTakesNoLessTimeThanAMeasuredOne) {
  EXPECT_EQ(time_of(products(), product(70, 64, 64)), time_of(products(), product(64, 64, 64)));
  EXPECT_EQ(time_of(products(), product(511, 512, 512)), time_of(products(), product(512, 512, 512)));
}

TEST(KernelTable, WhereMeasurementsContradictTheMiddleTimeHolds) {
  const KernelTable table = table_of(
      {{product(0, 0, 0), true, 0.5}, {product(64, 64, 64), false, 0.2}, {product(128, 64, 64), false, 0.6}});
  EXPECT_EQ(time_of(table, product(70, 64, 64)), time_of(table, product(128, 64, 64)));
}

TEST(KernelTable, AmongShapesThatWereNotMeasuredTimeGrowsWithSize) {
  const KernelTable table = products();
  for (double rows = 33; rows < 2000; rows *= 1.37)
    for (double in = 33; in < 2000; in *= 1.37)
      for (double out = 33; out < 2000; out *= 1.37) {
        const double here = time_of(table, product(rows, in, out));
        EXPECT_GE(time_of(table, product(rows * 1.01, in, out)), here);
        EXPECT_GE(time_of(table, product(rows, in * 1.01, out)), here);
        EXPECT_GE(time_of(table, product(rows, in, out * 1.01)), here);
      }
}

class KernelShapes : public ::testing::Test {
 protected:
  KernelShapes() {
    Job job = small_job("dp:1 bf16");
    job.training.micro_batches = 1;
    model_ = job.model;
    rows_ = static_cast<double>(job.training.batch * job.model.sequence);
    plan_ = compile(job).plan;
    machine_ = machine_of(job.supernode);
    machine_.software.issue.joined.value = machine_.software.issue.fused.value = 1;
  }

  const Program& program() const { return plan_.roles[0].program("train"); }

  // The kernel that an instruction of this origin is a part of.
  std::vector<const Instr*> kernel(const std::string& origin) const {
    const FusionGroups groups = fusion_groups_of(program(), true);
    std::vector<const Instr*> list;
    for (std::size_t i = 0; i < program().instrs.size(); ++i)
      if (program().origins[static_cast<std::size_t>(program().instrs[i].origin)] == origin && list.empty())
        for (const std::int32_t m : groups[i]) list.push_back(&program().instrs[static_cast<std::size_t>(m)]);
    EXPECT_FALSE(list.empty()) << origin;
    return list;
  }

  ModelSpec model_;
  double rows_ = 0;
  Plan plan_;
  Machine machine_;
};

TEST_F(KernelShapes, QueriesKeysAndValuesAreOneProductInEachPass) {
  const double in = model_.hidden, out = (model_.heads + 2 * model_.kv_heads) * model_.head_dim;
  EXPECT_EQ(kernel_shape(kernel("layers.0.attention.wk.product")), product(rows_, in, out));
  EXPECT_EQ(kernel_shape(kernel("layers.0.attention.wk.product.grad")),
            product(rows_, in, out, KernelPass::kInputGradient));
  EXPECT_EQ(kernel_shape(kernel("layers.0.attention.wk.product.grad2")),
            product(rows_, in, out, KernelPass::kWeightGradient));
}

TEST_F(KernelShapes, AMeasuredShapeSetsTheDuration) {
  const auto kernel_of_ffn = kernel("layers.0.ffn.gate.product");
  const KernelShape shape = kernel_shape(kernel_of_ffn).value();
  EXPECT_EQ(shape, product(rows_, model_.hidden, 2.0 * model_.ffn));
  machine_.hbm_bandwidth.value = 1e18;
  machine_.launch_cube.value = 0;
  machine_.kernels = table_of({{shape, false, 0.125}});
  const double nanos = compute_cost(kernel_of_ffn, program().mesh, machine_).nanos();
  EXPECT_NEAR(nanos, 2 * work(shape) / machine_.cube.bf16.value / 0.125 * 1e9, nanos * 1e-12);
}

TEST_F(KernelShapes, CopiesComeWithAttention) {
  const auto attention = [&] {
    KernelCosts costs(program(), machine_);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < program().instrs.size(); ++i)
      if (std::holds_alternative<instr::Attention>(program().instrs[i].op)) sum += costs.computing(i).value;
    return sum;
  };
  const std::int64_t without = attention();
  machine_.software.issue.attention_traffic.value = 2;
  const double copied =
      2.0 * rows_ * (model_.heads + 2 * model_.kv_heads) * model_.head_dim * size_of(DType::kBF16);
  EXPECT_NEAR(static_cast<double>(attention() - without),
              model_.layers * copied / machine_.hbm_bandwidth.value * 1e9, model_.layers);
}

TEST_F(KernelShapes, PassesOverGradientsComeOnceAStep) {
  const auto step = [&] {
    KernelCosts costs(program(), machine_);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < program().instrs.size(); ++i) sum += costs.computing(i).value;
    return sum;
  };
  const std::int64_t without = step();
  machine_.software.issue.gradient_traffic.value = 12;
  double elements = 0;
  for (const StateTensor& s : plan_.roles[0].state)
    if (s.cls == TensorClass::kWeight) elements += static_cast<double>(s.bytes.value) / 4;
  EXPECT_NEAR(static_cast<double>(step() - without), 12 * elements / machine_.hbm_bandwidth.value * 1e9, 2);
}

}  // namespace
}  // namespace hyperrun::testing

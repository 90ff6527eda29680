// What a training framework keeps in HBM beyond the tensors of the mathematics.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/compile/compile.h"
#include "runtime/ir/gradient_sums.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

Job with_software(Job job, const SoftwareMemory& memory, bool joined = true) {
  job.supernode.machine = machine_of(job.supernode);
  job.supernode.machine->software = {.name = "test", .about = "a framework", .memory = memory};
  job.supernode.machine->software.issue.joined.value = joined ? 1 : 0;
  return job;
}

const Buffer* software_of(const Plan& plan, std::size_t role = 0) {
  for (const Buffer& b : plan.roles[role].program("train").buffers)
    if (b.category == Category::kSoftware) return &b;
  return nullptr;
}

std::int64_t kept(const Job& job, std::size_t role = 0) {
  const Plan plan = compile(job).plan;
  const Buffer* b = software_of(plan, role);
  return b == nullptr ? 0 : b->bytes.value;
}

TEST(SoftwareMemory, WithoutSoftwareNothingIsAdded) {
  const Job job = small_job("dp:2 bf16 zero1");
  EXPECT_EQ(software_of(compile(job).plan), nullptr);
  const Job nothing = with_software(job, {});
  EXPECT_EQ(compile(nothing).plan, compile(job).plan);
}

// Queries, keys and values are one weight, so are the gates and the ups; the head has a shape of its own.
TEST(SoftwareMemory, WeightsOfOneShapeShareAnUnusedGradient) {
  const auto wide = [](const std::string& parallel) {
    Job job = small_job(parallel);
    job.model.ffn = 192;  // no two of its weights have one shape
    return job;
  };
  Job job = wide("tp:2 bf16");
  const ModelSpec m = job.model;
  const auto expected = [&](std::int64_t tp) {
    const std::int64_t qkv = (m.heads + 2 * m.kv_heads) * m.head_dim / tp, out = m.heads * m.head_dim / tp;
    return m.hidden * (qkv + out + 3 * m.ffn / tp + m.vocab / tp);
  };
  SoftwareMemory memory;
  memory.unused_gradients.value = 2;
  EXPECT_EQ(kept(with_software(job, memory)), 2 * expected(2));
  job = wide("dp:2 bf16 zero1");
  EXPECT_EQ(kept(with_software(job, memory)), 2 * expected(1));
  set_layers(job, 4);
  EXPECT_EQ(kept(with_software(job, memory)), 2 * expected(1)) << "layers have the same shapes";
  job.model.ffn = 64;  // gates and ups are then of the shape of queries, keys and values
  EXPECT_LT(kept(with_software(job, memory)), 2 * (expected(1) - 3 * m.hidden * (m.ffn - 64)));
}

TEST(SoftwareMemory, ApartQueriesAndOutputsMayBeOfOneShape) {
  Job job = small_job("dp:2 bf16");
  const ModelSpec& m = job.model;
  ASSERT_EQ(m.heads * m.head_dim, m.hidden);
  SoftwareMemory memory;
  memory.unused_gradients.value = 1;
  const std::int64_t shapes =
      m.hidden * m.hidden + m.hidden * m.kv_heads * m.head_dim + 2 * m.hidden * m.ffn + m.hidden * m.vocab;
  EXPECT_EQ(kept(with_software(job, memory, false)), shapes);
}

TEST(SoftwareMemory, WorkspacesAreWhereTheirProductsAre) {
  SoftwareMemory memory;
  memory.workspace.value = 1, memory.head_workspace.value = 10, memory.expert_workspace.value = 100;
  const Job job = with_software(small_job("pp:2"), memory);
  EXPECT_EQ(kept(job, 0), 1);
  EXPECT_EQ(kept(job, 1), 11);
  Job deepseek = small_job("dp:2");
  become_deepseek(deepseek);
  EXPECT_EQ(kept(with_software(deepseek, memory)), 111);
}

// Gradients go along dp, activations along tp, the norm of all gradients along both.
TEST(SoftwareMemory, EachGroupOfADeviceHasACommunicator) {
  SoftwareMemory memory;
  memory.communicator.value = 1;
  const Job job = with_software(small_job("dp:2 tp:2"), memory);
  std::set<AxisList> along;
  for (const Instr& i : compile(job).plan.roles[0].program("train").instrs)
    if (const auto* c = std::get_if<instr::Collective>(&i.op)) along.insert(c->axes);
  EXPECT_GE(along.size(), 2U);
  EXPECT_EQ(kept(job), std::ssize(along));
  EXPECT_EQ(kept(with_software(small_job("tp:1"), memory)), 0);
}

TEST(SoftwareMemory, IsPartOfThePeak) {
  SoftwareMemory memory;
  memory.workspace.value = 1 << 20;
  const Job job = small_job("dp:2");
  EXPECT_EQ(compile(with_software(job, memory)).plan.peak(), compile(job).plan.peak() + Bytes(1 << 20));
}

// With one micro-batch the first gradients come late, while sums that last are there from the start.
TEST(SoftwareMemory, SumsOfGradientsAndCopiesMayLast) {
  const Job job = small_job("dp:2 bf16");
  SoftwareMemory memory;
  memory.lasting_gradients.value = memory.lasting_copies.value = 1;
  const Plan plan = compile(with_software(job, memory)).plan;
  const Program& train = plan.roles[0].program("train");
  std::int64_t lasting = 0, weights = 0;
  for (const Buffer& b : train.buffers)
    if (b.state && b.category == Category::kGradients) lasting += b.bytes.value;
  for (const StateTensor& s : plan.roles[0].state)
    if (s.cls == TensorClass::kWeight) weights += s.bytes.value;
  EXPECT_EQ(lasting, weights);
  for (const Buffer& b : train.buffers) EXPECT_TRUE(b.state || b.category != Category::kWeights) << b.name;
  const Plan scattering = compile(with_software(small_job("dp:2 bf16 zero1"), memory)).plan;
  for (const Buffer& b : scattering.roles[0].program("train").buffers)
    EXPECT_FALSE(b.state && b.category == Category::kGradients) << b.name;
  Job moving = with_software(small_job("dp:2"), memory);
  moving.memory.policy = "hyperoffload";
  moving.supernode.pool = Bytes(1 << 30);
  const Plan moved = compile(moving).plan;
  for (const Buffer& b : moved.roles[0].program("train").buffers)
    EXPECT_FALSE(b.state && b.category == Category::kGradients) << b.name;
}

}  // namespace
}  // namespace hyperrun::testing

// Ring attention: division of work, dependencies, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;

bool is_attention(const Instr& i) { return name(i.op).starts_with("Attention"); }

Flops attention_of_a_device(const Job& job) {
  const Plan plan = compile(job).plan;
  Flops sum{};
  for (const Instr& i : plan.roles[0].program("train").instrs)
    if (is_attention(i)) sum += work(i, plan.mesh).flops;
  return sum;
}

// Eight devices, four heads of keys in groups of two. Heads do not divide, so with Ulysses every device would
// compute all of attention.
TEST(Ring, SharesAttentionWhereHeadsDoNotDivide) {
  const Flops one = attention_of_a_device(small_job("dp:1"));
  EXPECT_EQ(attention_of_a_device(small_job("cp:8")), one);
  EXPECT_EQ(attention_of_a_device(small_job("ring:8")).value * 8, one.value);
}

// The next keys are sent before the step with the present ones, so that they travel while it computes. A
// step's gradients travel while the next step computes.
TEST(Ring, KeysTravelAheadOfTheSteps) {
  const Plan plan = compile(small_job("ring:4")).plan;
  const Program& p = plan.roles[0].program("train");
  std::map<std::string, int> shifts;
  int steps = 0;
  for (const Instr& i : p.instrs) {
    const std::string& origin = p.origins[static_cast<std::size_t>(i.origin)];
    if (const auto* c = std::get_if<instr::Collective>(&i.op);
        c != nullptr && c->kind == instr::CollectiveKind::kShift)
      ++shifts[origin.substr(0, origin.find('@'))];
    if (!is_attention(i)) continue;
    ++steps;
    const std::string layer = origin.substr(0, origin.find("core"));
    const bool backward = origin.find(".grad") != std::string::npos;
    const int step = origin.back() - '0';
    for (const char* what : {"k", "wv.out"})
      EXPECT_EQ(shifts[layer + what], (backward ? 3 : 0) + std::min(step + 1, 3)) << origin;
    if (backward) {
      EXPECT_EQ(shifts[layer + "k.grad"], std::max(step - 1, 0)) << origin;
    }
  }
  EXPECT_EQ(steps, 2 * 2 * 4) << "forward and backward, of two layers";
  EXPECT_EQ(shifts["layers.0.attention.k.grad"], 3) << "home again";
}

// The preset is nothing but three rules, and the axis may have any name.
TEST(Ring, ARuleOfTheUserIsEnough) {
  Job job = small_job("dp:1");
  job.supernode.devices = 4;
  job.parallel.mesh = {{"parts", 4}};
  job.parallel.presets = {};
  for (const char* tensor : {"ids", "targets", "layers.*.attention.o"})
    job.parallel.rules.push_back({tensor, {{"seq", {"parts"}}}, "test"});
  const Program own = compile(job).plan.roles[0].program("train");
  const Program preset = compile(small_job("ring:4")).plan.roles[0].program("train");
  ASSERT_EQ(own.instrs.size(), preset.instrs.size());
  for (std::size_t i = 0; i < own.instrs.size(); ++i) EXPECT_EQ(own.instrs[i].op, preset.instrs[i].op);
}

Error refused(const Job& job) {
  try {
    compile(job);
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was refused";
  return Error(Code::kInternal, "");
}

TEST(Ring, ChunksThatDoNotDivideAreRefused) {
  Job job = small_job("ring:4");
  job.model.sequence = 36;
  const Error e = refused(job);
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_EQ(e.place(), "preset ring");
  EXPECT_THAT(e.cause(), HasSubstr("seq = 36 into 8 chunks"));
  EXPECT_EQ(e.legal(), "1, 2, 3, 6, 9, 18");
}

// All layers share one order of the sequence, which the mask of an attention without a ring does not support.
TEST(Ring, AWholeAttentionBesideARingIsRefused) {
  Job job = small_job("ring:4");
  job.parallel.rules = {{"layers.1.attention.o", {{"seq", {}}}, "test"}};
  const Error e = refused(job);
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_THAT(e.cause(), HasSubstr("a ring of 4, layers.1.attention.core round one of 1"));
  EXPECT_EQ(e.place(), "test");
  EXPECT_EQ(e.legal(), "one size for all: 4 or 1");
}

}  // namespace
}  // namespace hyperrun::testing

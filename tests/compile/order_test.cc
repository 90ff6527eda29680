#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

// The instructions that gather a weight, and for each the first that reads what it made.
struct Gather {
  std::size_t at, used;
};

std::vector<Gather> gathers(const Program& program) {
  std::vector<Gather> list;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    if (!std::holds_alternative<instr::Collective>(instr.op) || !program[instr.in[0].buffer].state) continue;
    std::size_t j = i + 1;
    const auto reads = [&](const Instr& other) {
      return std::any_of(other.in.begin(), other.in.end(),
                         [&](const Operand& o) { return o.buffer == instr.out[0].buffer; });
    };
    while (!reads(program.instrs[j])) ++j;
    list.push_back({i, j});
  }
  return list;
}

TEST(Order, TheNextWeightIsGatheredBeforeThisOneIsUsed) {
  const Compiled compiled = compile(small_job("dp:2 zero3"));
  const auto list = gathers(compiled.plan.roles[0].program("train"));
  ASSERT_GT(list.size(), 20u);
  for (std::size_t g = 0; g + 1 < list.size(); ++g) EXPECT_LT(list[g + 1].at, list[g].used) << g;
  for (std::size_t g = 0; g + 2 < list.size(); ++g)
    EXPECT_GT(list[g + 2].at, list[g].used) << "only one ahead";
}

}  // namespace
}  // namespace hyperrun::testing

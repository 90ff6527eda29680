// The sharded graph and the Program of a tiny model as text, compared with golden/*.txt.
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include "runtime/compile/compile.h"
#include "tests/shard/tiny_job.h"

namespace hyperrun::testing {
namespace {

const std::string kFolder = "tests/shard/golden/";

class Golden : public ::testing::TestWithParam<Parallel> {};

TEST_P(Golden, ShardedGraph) {
  const Job job = tiny_job(GetParam());
  const Compiled compiled = compile(job);
  expect_golden(kFolder + GetParam().name + ".graph.txt", print(compiled.training, compiled.plan.mesh));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Golden,
                         ::testing::Values(Parallel{"dp2", 2, 1, {"dp"}}, Parallel{"tp2", 1, 2, {"tp"}},
                                           Parallel{"dp2tp2sp", 2, 2, {"dp", "tp", "sp"}},
                                           Parallel{"dp2zero1", 2, 1, {"dp", "zero1"}}),
                         [](const auto& info) { return info.param.name; });

TEST(Golden, Program) {
  const Compiled compiled = compile(tiny_job({"dp2tp2sp", 2, 2, {"dp", "tp", "sp"}}));
  expect_golden(kFolder + "dp2tp2sp.program.txt", print(compiled.plan.roles[0].program("train")));
}

}  // namespace
}  // namespace hyperrun::testing

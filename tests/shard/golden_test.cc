// The sharded graph and the Program of a tiny model as text, compared with golden/*.txt. A change there is
// read by a person: HYPERRUN_UPDATE_GOLDEN=1 shard_test writes the files anew, git diff shows what changed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "runtime/compile/compile.h"
#include "tests/shard/tiny_job.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

// The first line that differs, with its number.
std::string first_difference(const std::string& expected, const std::string& actual) {
  std::istringstream a(expected), b(actual);
  std::string x, y;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(a, x)), more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) return "nothing";
    if (more_a != more_b || x != y)
      return "line " + std::to_string(line) + "\n  golden: " + (more_a ? x : "(end)") +
             "\n  now:    " + (more_b ? y : "(end)");
  }
}

void compare(const std::string& file, const std::string& text) {
  const std::string path = std::string(HYPERRUN_SOURCE_DIR "/tests/shard/golden/") + file;
  if (std::getenv("HYPERRUN_UPDATE_GOLDEN") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(path) << text;
    return;
  }
  const std::string golden = content(path);
  EXPECT_TRUE(golden == text) << path << " differs at " << first_difference(golden, text)
                              << "\nif it is meant so: HYPERRUN_UPDATE_GOLDEN=1 shard_test";
}

class Golden : public ::testing::TestWithParam<Parallel> {};

TEST_P(Golden, ShardedGraph) {
  const Job job = tiny_job(GetParam());
  const Compiled compiled = compile(job);
  compare(GetParam().name + ".graph.txt", print(compiled.training, compiled.plan.mesh));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Golden,
                         ::testing::Values(Parallel{"dp2", 2, 1, {"dp"}}, Parallel{"tp2", 1, 2, {"tp"}},
                                           Parallel{"dp2tp2sp", 2, 2, {"dp", "tp", "sp"}},
                                           Parallel{"dp2zero1", 2, 1, {"dp", "zero1"}}),
                         [](const auto& info) { return info.param.name; });

TEST(Golden, Program) {
  const Compiled compiled = compile(tiny_job({"dp2tp2sp", 2, 2, {"dp", "tp", "sp"}}));
  compare("dp2tp2sp.program.txt", print(compiled.plan.roles[0].program("train")));
}

}  // namespace
}  // namespace hyperrun::testing

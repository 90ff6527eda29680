// Compares the Programs of small jobs with earlier ones, as text: golden/NAME.textproto is the job,
// golden/NAME.txt has the Programs of each role. Together the jobs have every parallel dimension, every
// schedule and every kind of transfer.
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include "runtime/compile/compile.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun::testing {
namespace {

const std::string kFolder = "tests/compile/golden/";

Plan compiled(const std::string& name) {
  const std::string path = HYPERRUN_SOURCE_DIR "/" + kFolder + name + ".textproto";
  const Job job = load_job(path, JobUse::kToBeForeseen).job;
  return (job.inference == InferenceSpec{} ? compile(job) : compile_generation(job)).plan;
}

std::string printed(const Plan& plan) {
  std::string text;
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (const Program& program : plan.roles[r].programs)
      text += "role " + std::to_string(r) + " " + program.name + "\n" + print(program) + "\n";
  return text;
}

class GoldenProgram : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenProgram, IsWhatItWas) {
  expect_golden(kFolder + GetParam() + ".txt", printed(compiled(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Jobs, GoldenProgram,
                         ::testing::Values("dp", "tp_sp", "tp2d", "ring_ulysses", "ep", "interleaved",
                                           "zero_bubble", "zero3", "hyperoffload", "tiles_pairs",
                                           "generation"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hyperrun::testing

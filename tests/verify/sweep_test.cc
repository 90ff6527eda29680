// A sweep in which some layouts are wrong.
#include "runtime/verify/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/spec/job_reader.h"
#include "runtime/verify/random_job.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// One step of the job, whose first collective takes the maximum instead of the sum.
Verification verify_broken(const Job& job) {
  Compiled compiled = compile(job);
  for (Program& p : compiled.plan.roles[0].programs)
    for (Instr& i : p.instrs) {
      auto* c = std::get_if<instr::Collective>(&i.op);
      if (c == nullptr || c->reduction != Reduction::kSum || c->kind != instr::CollectiveKind::kAllReduce)
        continue;
      c->reduction = Reduction::kMax;
      return verify_layout(job, compiled, 1);
    }
  throw std::runtime_error("nothing to break in " + job.name);
}

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() : before_(std::filesystem::current_path()) { std::filesystem::current_path(directory_.path()); }
  ~SweepTest() override { std::filesystem::current_path(before_); }

  // The final exception, and the output.
  std::pair<std::optional<Error>, std::string> swept(const std::function<Verification(const Job&)>& verify) {
    std::optional<Error> thrown;
    ::testing::internal::CaptureStdout();
    try {
      verify_sweep({nullptr, 3, 1}, verify);
    } catch (const Error& e) {
      thrown = e;
    }
    return {thrown, ::testing::internal::GetCapturedStdout()};
  }

  TemporaryDirectory directory_;
  std::filesystem::path before_;
};

Verification verified(const Job& job) { return verify_layout(job, compile(job), 1); }

TEST_F(SweepTest, WritesTheJobThatDiverges) {
  const auto [thrown, out] =
      swept([](const Job& job) { return job.name == "random-2" ? verify_broken(job) : verified(job); });
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), Code::kNotEqual);
  EXPECT_EQ(thrown->remedy(),
            "report it with random-2.textproto; hyperrun verify random-2.textproto repeats it");
  EXPECT_THAT(out, AllOf(HasSubstr("1 of 3, seed 1: equal, "),
                         HasSubstr("2 of 3, seed 2: not-equal at " + thrown->place() +
                                   ", see random-2.textproto; name: \"random-2\" "),
                         HasSubstr("3 of 3, seed 3: equal, ")));
  EXPECT_EQ(load_job("random-2.textproto").job, random_job(2, nullptr));
  EXPECT_FALSE(std::filesystem::exists("random-1.textproto"));
}

TEST_F(SweepTest, WritesTheJobThatFails) {
  const auto [thrown, out] = swept([](const Job& job) {
    HR_CHECK(job.name != "random-1" && job.name != "random-3", job.name);
    return verified(job);
  });
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), Code::kInternal);
  EXPECT_THAT(thrown->cause(), HasSubstr("random-1")) << "the first of them";
  EXPECT_TRUE(std::filesystem::exists("random-1.textproto"));
  EXPECT_TRUE(std::filesystem::exists("random-3.textproto"));
  EXPECT_THAT(out, HasSubstr("2 of 3, seed 2: equal, ")) << "the others go on";
}

// The result is kept even if the process ends in the middle.
TEST_F(SweepTest, TheJobIsThereWhileItIsVerified) {
  swept([](const Job& job) {
    EXPECT_EQ(load_job(job.name + ".textproto").job, job);
    return verified(job);
  });
}

TEST_F(SweepTest, OfEqualLayoutsLeavesNothing) {
  const auto [thrown, out] = swept(verified);
  EXPECT_FALSE(thrown);
  EXPECT_THAT(out, HasSubstr("\nequal: 3 layouts, "));
  EXPECT_TRUE(std::filesystem::is_empty("."));
}

}  // namespace
}  // namespace hyperrun::testing

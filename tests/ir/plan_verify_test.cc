// verify(Plan) finds planted faults between roles: one thing is changed in a Plan that is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;

class PlanFaults : public ::testing::Test {
 protected:
  PlanFaults() {
    Job job = small_job("pp:2");
    job.training.micro_batches = 4;
    plan_ = compile(job).plan;
  }
  std::string fault() const {
    try {
      verify(plan_);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  Program& train(std::size_t role) { return plan_.roles[role].programs[plan_.program_index("train")]; }
  // The instruction of the n-th message of a kind.
  std::size_t message(std::size_t role, instr::CollectiveKind kind, int n) {
    const auto& instrs = train(role).instrs;
    for (std::size_t i = 0; i < instrs.size(); ++i)
      if (const auto* c = std::get_if<instr::Collective>(&instrs[i].op); c && c->kind == kind && n-- == 0)
        return i;
    ADD_FAILURE();
    return 0;
  }

  Plan plan_;
};

TEST_F(PlanFaults, TheCompilersIsValid) { EXPECT_EQ(fault(), ""); }

TEST_F(PlanFaults, AMessageThatIsNotTaken) {
  auto& instrs = train(1).instrs;
  instrs.erase(instrs.begin() + static_cast<std::ptrdiff_t>(message(1, instr::CollectiveKind::kRecv, 3)));
  EXPECT_NE(fault(), "");
}

TEST_F(PlanFaults, AMessageThatIsNotSent) {
  auto& instrs = train(0).instrs;
  instrs.erase(instrs.begin() + static_cast<std::ptrdiff_t>(message(0, instr::CollectiveKind::kSend, 0)));
  EXPECT_THAT(fault(), HasSubstr("waits for ever"));
}

TEST_F(PlanFaults, AMessageOfAnotherSize) {
  std::get<instr::Collective>(train(0).instrs[message(0, instr::CollectiveKind::kSend, 1)].op).inner += 1;
  EXPECT_THAT(fault(), HasSubstr("expects another message"));
}

// Stage 0 would wait for the gradient of an activation before it sends that activation.
TEST_F(PlanFaults, AReceiveThatIsWaitedForTooEarly) {
  Program& p = train(0);
  const std::size_t send = message(0, instr::CollectiveKind::kSend, 0),
                    recv = message(0, instr::CollectiveKind::kRecv, 0);
  p.instrs[send].waits.push_back({StreamKind::kRecv, 1});
  std::rotate(p.instrs.begin() + static_cast<std::ptrdiff_t>(send),
              p.instrs.begin() + static_cast<std::ptrdiff_t>(recv),
              p.instrs.begin() + static_cast<std::ptrdiff_t>(recv) + 1);
  EXPECT_THAT(fault(), HasSubstr("waits for ever"));
}

TEST_F(PlanFaults, RolesWithOtherPrograms) {
  plan_.roles[1].programs.pop_back();
  EXPECT_THAT(fault(), HasSubstr("differ in their programs"));
}

}  // namespace
}  // namespace hyperrun::testing

// Constraints of a user, as they are written.
#include "runtime/plan/constraint.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "runtime/plan/choice_ablation.h"
#include "runtime/plan/search.h"
#include "tests/support/jobs.h"

namespace hyperrun {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  try {
    constraint_of(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUsage) << text;
    return e.what();
  }
  return "";
}

TEST(Constraint, ExplainsAnIllegalNumber) {
  const std::string range = "legal: whole numbers from 0 to 2147483647";
  EXPECT_THAT(refusal_of("tp=99999999999"), AllOf(HasSubstr("99999999999 is more than 2147483647"),
                                                  HasSubstr(range), HasSubstr("fix: write a size")));
  EXPECT_THAT(refusal_of("zero=-1"), AllOf(HasSubstr("-1 is less than 0"), HasSubstr(range)));
  for (const char* text : {"two", "2.5", "+2", "2 ", "0x2", "-"})
    EXPECT_THAT(refusal_of(std::string("tp=") + text),
                AllOf(HasSubstr("\"" + std::string(text) + "\" is no whole number"), HasSubstr(range)));
  EXPECT_THAT(refusal_of("tp=2,,4"), HasSubstr("a value of \"tp\" is missing"));
}

// Every name that the planner prints for a value can be used in a constraint.
TEST(Constraint, AcceptsEveryNamedValue) {
  for (const Dimension& d : dimensions())
    for (const std::int32_t v : d.named)
      EXPECT_EQ(constraint_of(std::string(d.key) + "=" + d.text(v)).values, std::vector{v}) << d.key;
}

void expect_told_can_be_said(const Search& s) {
  ASSERT_TRUE(s.found());
  for (std::size_t d = 0; d < dimensions().size(); ++d)
    for (const auto& [value, alternative] : s.alternatives.of(d)) {
      const std::string text = std::string(dimensions()[d].key) + "=" + dimensions()[d].text(value);
      EXPECT_EQ(constraint_of(text).values, std::vector{value}) << text;
    }
}

TEST(Constraint, AcceptsEveryValueOfASearch) {
  expect_told_can_be_said(search(testing::small_job("dp:4"), {.leaders = 1}));
  expect_told_can_be_said(search(testing::small_job("dp:1"), {.leaders = 1}));
}

// Strategies that cannot have the innermost axis must not displace those that can.
TEST(Constraint, InnermostAxisHasSeveralDevices) {
  const Job job = testing::small_job("dp:4");
  const auto first = [&](std::initializer_list<const char*> only, std::int32_t leaders) {
    Space space = spaces().front();
    for (const char* text : only) space.only.push_back(constraint_of(text));
    Search s = search(job, {.space = &space, .leaders = leaders});
    EXPECT_TRUE(s.found());
    return s;
  };
  for (const char* innermost : {"innermost=tp", "innermost=dp"}) {
    const Search all = first({innermost, "samples=1"}, 2),
                 each = first({innermost, "samples=1", "tp=2", "dp=2"}, 2);
    EXPECT_LE(all.leaders.front().simulated, each.leaders.front().simulated) << innermost;
    for (const SimulatedCandidate& l : all.leaders) EXPECT_GT(l.forecast.time, 0) << describe(l.strategy);
  }
}

// One device has no innermost axis.
TEST(Constraint, OneDeviceHasNoInnermostAxis) {
  const auto found = [](const std::string& parallel) {
    Space space = spaces().front();
    space.only.push_back(constraint_of("innermost=none"));
    return search(testing::small_job(parallel), {.space = &space, .leaders = 1}).found();
  };
  EXPECT_TRUE(found("dp:1"));
  EXPECT_FALSE(found("dp:2"));
}

}  // namespace
}  // namespace hyperrun

// Properties of every Plan, checked on jobs of all kinds.
#include "tests/compile/random_jobs.h"

#include <gtest/gtest.h>

#include <map>

#include "proto/program.pb.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/spec/plan_io.h"
#include "tests/support/faults.h"

namespace hyperrun::testing {
namespace {

Bytes most_live(const Program& program) {
  Bytes most{};
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(program.instrs.size()); ++i) {
    Bytes live{};
    for (const Buffer& b : program.buffers)
      if (b.state || (b.first <= i && i <= b.last)) live += b.bytes;
    most = std::max(most, live);
  }
  return most;
}

class RandomJob : public ::testing::TestWithParam<unsigned> {
 protected:
  const Job job_ = random_job(GetParam());
  const Compiled compiled_ = compile(job_);
};

TEST_P(RandomJob, PassesTheVerifiers) {
  EXPECT_EQ(fault(compiled_.training), "");
  EXPECT_EQ(compiled_.plan.roles[0].programs.size(), job_.run.generate.tokens > 0 ? 4U : 2U);
  for (const Program& p : compiled_.plan.roles[0].programs) {
    EXPECT_EQ(fault(p), "");
    EXPECT_GE(p.peak[0], most_live(p)) << p.name << ": more is live than is planned for";
    EXPECT_LE(p.peak[0], compiled_.plan.peak());
  }
  EXPECT_NO_THROW(check_fits(compiled_.plan, compiled_.plan.peak()));
}

// State has the same offset in all Programs, aligned for vectors, and shares it with nothing.
TEST_P(RandomJob, StateStaysWhereItIs) {
  std::map<std::string, Bytes> places;
  Bytes end{};
  for (const Program& p : compiled_.plan.roles[0].programs)
    for (const Buffer& b : p.buffers) {
      EXPECT_EQ(b.offset.value % 64, 0) << b.name;
      if (!b.state) continue;
      EXPECT_EQ(places.emplace(b.name, b.offset).first->second, b.offset) << b.name << " in " << p.name;
    }
  for (const StateTensor& s : compiled_.plan.roles[0].state) end = std::max(end, s.offset + s.bytes);
  for (const Program& p : compiled_.plan.roles[0].programs)
    for (const Buffer& b : p.buffers)
      if (!b.state && b.bytes.value > 0) {
        EXPECT_GE(b.offset, end) << b.name << " lies in the state in " << p.name;
      }
}

TEST_P(RandomJob, SurvivesTheWire) {
  const std::string bytes = to_bytes(compiled_.plan);
  const Plan back = plan_from_bytes(bytes, "test");
  EXPECT_TRUE(back == compiled_.plan);
  EXPECT_EQ(to_bytes(back), bytes);
}

TEST_P(RandomJob, CompilesTheSameAgain) { EXPECT_TRUE(compile(job_).plan == compiled_.plan); }

INSTANTIATE_TEST_SUITE_P(Seeds, RandomJob, ::testing::Range(0U, 40U));

// Damaged bytes are refused, or give a Plan that can be sent on, without a crash or an index out of range.
TEST(DamagedPlan, IsRefusedOrHarmless) {
  Job job = random_job(0);
  job.model.layers = 1;
  const std::string good = to_bytes(compile(job).plan);
  std::mt19937 random(9);
  int refused = 0;
  constexpr int kTries = 1500;
  for (int i = 0; i < kTries; ++i) {
    std::string bad = good;
    switch (i % 3) {
      case 0: bad[random() % bad.size()] ^= static_cast<char>(1U << (random() % 8)); break;
      case 1: bad.resize(random() % bad.size()); break;
      default:
        for (int n = 0; n < 4; ++n) bad[random() % bad.size()] = static_cast<char>(random());
    }
    try {
      const Plan plan = plan_from_bytes(bad, "host:1");
      for (const Program& p : plan.roles[0].programs) {
        print(p);
        fault(p);  // may find a fault, but must not crash
      }
      plan_from_bytes(to_bytes(plan), "again");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kControl) << e.what();
      EXPECT_EQ(e.place(), "host:1");
      ++refused;
    }
  }
  EXPECT_GT(refused, kTries / 4);
}

TEST(DamagedPlan, NamesNoMoreAxesThanThereAreNorAnyTwice) {
  const std::string good = to_bytes(compile(random_job(0)).plan);
  const auto expect_refused = [&](const auto& damage) {
    proto::Plan bad;
    ASSERT_TRUE(bad.ParseFromString(good));
    damage(bad);
    try {
      plan_from_bytes(bad.SerializeAsString(), "host:1");
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kControl) << e.what();
    }
  };
  expect_refused([](proto::Plan& plan) {
    while (plan.mesh_size() <= static_cast<int>(kMostAxes)) plan.add_mesh()->set_size(1);
  });
  expect_refused([](proto::Plan& plan) {
    plan.add_mesh()->set_size(1);
    for (const int axis : {plan.mesh_size() - 1, plan.mesh_size() - 1}) plan.add_role_axes(axis);
  });
  expect_refused([](proto::Plan& plan) {
    plan.add_mesh()->set_size(1);
    proto::PlanState& state = *plan.mutable_roles(0)->mutable_state(0);
    for (int twice = 0; twice < 2; ++twice) state.mutable_layout(0)->add_axes(plan.mesh_size() - 1);
  });
}

TEST(DamagedPlan, NothingIsNoPlan) { EXPECT_ANY_THROW(plan_from_bytes("nonsense", "test")); }

}  // namespace
}  // namespace hyperrun::testing

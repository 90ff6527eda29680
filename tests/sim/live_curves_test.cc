// Live bytes over virtual time, against the curve of all categories together and against an independent
// account: each buffer from the beginning of its first instruction to the end of its last use.
#include "runtime/sim/live_curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "runtime/compile/compile.h"
#include "runtime/sim/simulate.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

struct Case {
  const char* parallel;
  bool offload = false;
};

std::string text(const Case& c) {
  const std::string layout = test_title(c.parallel);
  return (layout.empty() ? "OneDevice" : layout) + (c.offload ? "Offload" : "");
}

void PrintTo(const Case& c, std::ostream* out) { *out << text(c); }

class LiveCurves : public ::testing::TestWithParam<Case> {
 protected:
  LiveCurves() {
    Job job = small_job(GetParam().parallel);
    job.training.micro_batches = 4;
    job.training.batch = 16;
    if (GetParam().offload) {
      job.supernode.hbm = compile(job).plan.peak() * 2 / 3;
      job.supernode.pool = kGiB;
      job.memory.policy = "hyperoffload";
    }
    plan_ = compile(job).plan;
    result_ = simulate(plan_, "train", job.supernode, Topology::one_host(job.supernode.devices));
  }
  const Program& program(std::size_t role) const { return plan_.roles[role].program("train"); }
  int device(std::size_t role) const { return plan_.mesh.group(0, plan_.role_axes)[role]; }
  const std::vector<Span>& spans(std::size_t role) const { return result_.times(device(role)).spans; }

  Curve whole(std::size_t role) const { return result_.traced(device(role), program(role)).live[0]; }

  Plan plan_;
  SimResult result_;
};

// The bytes between two moments of change.
CategoryBytes alive_at(const Program& program, const std::vector<Span>& spans, std::int64_t time) {
  std::vector<std::int64_t> last(program.buffers.size(), -1);
  for (std::size_t i = 0; i < spans.size(); ++i)
    for (const Use& use : uses(program.instrs[i])) last[use.operand.buffer.index()] = spans[i].end;
  for (const Output& output : program.outputs)
    last[output.operand.buffer.index()] =
        spans[static_cast<std::size_t>(program[output.operand.buffer].last)].end;
  CategoryBytes sum{};
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    const bool lives = buffer.state || (buffer.first >= 0 && time < last[b] &&
                                        spans[static_cast<std::size_t>(buffer.first)].begin <= time);
    if (buffer.tier == Tier::kHbm && lives) sum[static_cast<std::size_t>(buffer.category)] += buffer.bytes;
  }
  return sum;
}

TEST_P(LiveCurves, CategoriesAddUpToTheWholeAtEachMoment) {
  for (std::size_t r = 0; r < plan_.roles.size(); ++r) {
    const std::vector<LivePoint> points = live_by_category(program(r), spans(r));
    Curve sums, changes{{0, points.front().total().value}};
    for (const LivePoint& p : points) sums.emplace_back(p.time, p.total().value);
    const Curve all = whole(r);
    for (const auto& point : all)
      if (point.second != changes.back().second) changes.push_back(point);
    EXPECT_EQ(sums, changes) << "role " << r;
  }
}

TEST_P(LiveCurves, HighestIsThatOfTheWholeAndWithinTheArena) {
  for (std::size_t r = 0; r < plan_.roles.size(); ++r) {
    const std::vector<LivePoint> points = live_by_category(program(r), spans(r));
    const Bytes highest = std::ranges::max(points, {}, &LivePoint::total).total();
    const Curve all = whole(r);
    EXPECT_EQ(highest.value, std::ranges::max(all, {}, &Curve::value_type::second).second);
    EXPECT_LE(highest, program(r).peak[0]);
  }
}

TEST_P(LiveCurves, BuffersLiveFromTheirFirstInstructionToTheirLastUse) {
  for (std::size_t r = 0; r < plan_.roles.size(); ++r) {
    const std::vector<LivePoint> points = live_by_category(program(r), spans(r));
    const std::size_t every = std::max<std::size_t>(1, points.size() / 100);
    for (std::size_t i = 0; i + 1 < points.size(); i += every)
      if (points[i].time < points[i + 1].time) {
        EXPECT_EQ(points[i].bytes, alive_at(program(r), spans(r), points[i].time)) << points[i].time;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, LiveCurves,
                         ::testing::Values(Case{""}, Case{"dp:2 tp:2 sp zero1"}, Case{"dp:4 zero3"},
                                           Case{"pp:2 dp:2 zero1"}, Case{"pp:2 zero_bubble"},
                                           Case{"ring:2 tp:2 sp bf16"}, Case{"tp:2", true}),
                         [](const auto& info) { return text(info.param); });

}  // namespace
}  // namespace hyperrun::testing

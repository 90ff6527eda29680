#include "runtime/ir/live_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

Program train(const Job& job) { return compile(job).plan.roles[0].program("train"); }

Bytes sum(const CategoryBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), Bytes(0)); }

// If no instruction ends before the last has begun, all buffers are live at once, whatever was planned.
TEST(LiveBytes, ThePeakIsWhatLivedAtOnce) {
  const Program program = train(small_job(2, 2, {"sp"}));
  Bytes all{};
  for (const Buffer& b : program.buffers) all += b.bytes;
  LiveBytes live(program);
  const Bytes state = live.total();
  for (std::size_t i = 0; i < program.instrs.size(); ++i) live.begin(i);
  EXPECT_EQ(live.peak().bytes, all);
  for (std::size_t i = 0; i < program.instrs.size(); ++i) live.end(i);
  EXPECT_EQ(live.peak().bytes, all) << "it stays";
  EXPECT_EQ(sum(live.peak().by_category), all);
  EXPECT_EQ(live.total(), state);
  EXPECT_LT(peak_use(program).bytes, all);
  live.begin_program();
  EXPECT_EQ(live.peak().bytes, state);
}

// A buffer that is sent keeps its place until the next message, but is live only until it is sent.
TEST(LiveBytes, ABufferDiesWithItsLastUse) {
  Job job = small_job("pp:2 gpipe");
  job.training.micro_batches = 4;
  const Program program = train(job);
  std::vector<std::int32_t> last(program.buffers.size(), -1);
  for (std::int32_t i = 0; i < std::ssize(program.instrs); ++i)
    for (const Use& use : uses(program.instrs[static_cast<std::size_t>(i)]))
      last[use.operand.buffer.index()] = i;
  int kept = 0;
  LiveBytes live(program);
  for (std::int32_t i = 0; i < std::ssize(program.instrs); ++i) {
    live.begin(static_cast<std::size_t>(i));
    live.end(static_cast<std::size_t>(i));
    Bytes expected{};
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& buffer = program.buffers[b];
      const bool output = std::ranges::any_of(program.outputs,
                                              [&](const Output& o) { return o.operand.buffer.index() == b; });
      const std::int32_t end = output ? buffer.last : last[b];
      if (buffer.state || (buffer.first <= i && i < end)) expected += buffer.bytes;
      kept += end < buffer.last ? 1 : 0;
    }
    ASSERT_EQ(live.total(), expected) << "after instruction " << i;
  }
  EXPECT_GT(kept, 0) << "nothing is sent";
}

}  // namespace
}  // namespace hyperrun::testing

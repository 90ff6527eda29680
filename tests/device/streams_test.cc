// The overlap, the waits and the costs of a device's streams, from the times of each instruction, in one
// thread and with a thread a stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/device/stream_workers.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

std::int64_t duration(const InvocationStats& s) { return s.end - s.begin; }

std::int64_t computing(const InvocationStats& s) {
  return (s.busy[static_cast<std::size_t>(StreamKind::kCube)] +
          s.busy[static_cast<std::size_t>(StreamKind::kVector)])
      .value;
}

TEST(Exposed, NothingOnOneDevice) {
  for (const bool threads : {false, true}) {
    const RunResult run = run_in_process(small_job(1, 1), {.thread_per_stream = threads, .steps = 2});
    EXPECT_EQ(run.stats[0].exposed, Nanos(0));
  }
}

// Device 1 comes a tenth of a second late to every step.
RunOptions with_a_late_device(bool threads) {
  RunOptions options{.thread_per_stream = threads, .steps = 2};
  options.before_step = [](int device, std::int64_t) {
    if (device == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  return options;
}

// In one thread a device either computes or waits, but for the bookkeeping between instructions, which is
// short beside the wait for the late one.
TEST(Exposed, TheWaitForALateDevice) {
  const RunResult run = run_in_process(small_job(2, 1), with_a_late_device(false));
  for (const InvocationStats& s : run.stats) {
    EXPECT_GT(s.exposed, Nanos(0));
    EXPECT_LE(s.exposed.value, duration(s) - computing(s));
  }
  const InvocationStats& punctual = run.stats[0];
  EXPECT_GT(punctual.exposed.value, (duration(punctual) - computing(punctual)) / 2);
}

// With a thread a stream the compute streams wait for the comm stream by events.
TEST(Exposed, TheWaitForALateDeviceInThreads) {
  const RunResult run = run_in_process(small_job(2, 1), with_a_late_device(true));
  for (const InvocationStats& s : run.stats) EXPECT_LE(s.exposed.value, duration(s));
  EXPECT_GT(run.stats[0].exposed, Nanos(0));
}

class Streams : public ::testing::TestWithParam<bool> {};

TEST_P(Streams, NothingBeginsBeforeWhatItWaitsFor) {
  for (const auto& [dp, tp] : {std::pair{2, 1}, {2, 2}}) {
    const Job job = small_job(dp, tp, {"sp", "zero1"});
    const Program train = compile(job).plan.roles[0].program("train");
    std::map<std::pair<StreamKind, std::int32_t>, std::size_t> index;
    for (std::size_t i = 0; i < train.instrs.size(); ++i)
      index[{train.instrs[i].stream, train.instrs[i].seq}] = i;
    for (const InvocationStats& s : run_in_process(job, with_a_late_device(GetParam())).stats)
      for (std::size_t i = 0; i < train.instrs.size(); ++i)
        for (const Event& e : train.instrs[i].waits)
          EXPECT_LE(s.spans[index.at({e.stream, e.seq})].end, s.spans[i].begin) << "instruction " << i;
  }
}

// While it waits for the late device, the other computes independent instructions.
TEST_P(Streams, DevicesComputeWhileCollectivesAreUnderWay) {
  const Job job = small_job(2, 1);
  const Program train = compile(job).plan.roles[0].program("train");
  const InvocationStats s = run_in_process(job, with_a_late_device(GetParam())).stats[0];
  int overlaps = 0;
  for (std::size_t c = 0; c < train.instrs.size(); ++c)
    for (std::size_t i = c + 1; i < train.instrs.size(); ++i)
      if (train.instrs[c].stream == StreamKind::kComm && train.instrs[i].stream != StreamKind::kComm)
        overlaps += s.spans[i].begin < s.spans[c].end ? 1 : 0;
  EXPECT_GT(overlaps, 0);
}

TEST_P(Streams, HaveThreadsOfTheirOwnIfTheyShall) {
  std::thread::id device, stream;
  RunOptions options{.thread_per_stream = GetParam(), .steps = 1};
  options.before_step = [&](int, std::int64_t) { device = std::this_thread::get_id(); };
  options.batch = [&](auto, auto, auto count, auto, auto length, auto* ids, auto* targets) {
    stream = std::this_thread::get_id();
    std::fill_n(ids, count * length, 1);
    std::fill_n(targets, count * length, 1);
  };
  run_in_process(small_job(1, 1), options);
  EXPECT_EQ(device != stream, GetParam());
}

// Many streams stop quickly because one has failed: their exceptions must not hide the cause.
TEST(StreamWorkers, TheCauseIsToldAndNotWhatFollowsFromIt) {
  StreamWorkers workers([] {});
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> stop{false};
    const auto work = [&](StreamKind stream) {
      if (stream == StreamKind::kVector) throw Error(Code::kBadCorpus, "the cause");
      stop.wait(false);
      throw Error(Code::kDeviceLost, "what follows");
    };
    const auto stop_others = [&] {
      stop = true;
      stop.notify_all();
    };
    try {
      workers.run(work, stop_others);
      FAIL() << "it ended well";
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), Code::kBadCorpus) << "round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Streams, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Threads" : "InOrder"; });

}  // namespace
}  // namespace hyperrun::testing

// The simulation of compiled jobs: every span against an independent calculation, folded and unfolded alike.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/compile/compile.h"
#include "runtime/sim/job_forecast.h"
#include "runtime/sim/simulate.h"
#include "tests/sim/programs.h"
#include "tests/support/errors.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

struct Case {
  Job job;
  Topology topology;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](int dp, int tp, const std::vector<std::string>& presets, int micro_batches,
                       Topology topology) {
    Job job = small_job(dp, tp, presets);
    job.training.micro_batches = micro_batches;
    list.push_back({job, std::move(topology)});
  };
  add(1, 1, {}, 1, Topology::one_host(1));
  add(2, 2, {"sp"}, 2, Topology::one_host(4));
  add(2, 4, {"sp", "zero1"}, 1, Topology::uniform(2, 4));
  add(4, 2, {"zero1"}, 1, Topology::uniform(4, 2));
  add(4, 2, {}, 1, {{0, 0, 0, 0, 0, 1, 1, 1}});  // tp of devices 4, 5 crosses hosts
  add(2, 4, {"sp"}, 1, {{0, 0, 1, 2, 0, 0, 1, 1}});
  return list;
}

TEST(EventLoop, EverySpanIsTheLongestPathToIt) {
  for (const Case& c : cases()) {
    const Plan plan = compile(c.job).plan;
    const auto expected = expected_spans(plan.roles[0].program("train"), c.job.supernode, c.topology);
    const SimResult r = simulate(plan, "train", c.job.supernode, c.topology);
    std::int64_t end = 0;
    for (int d = 0; d < c.topology.size(); ++d) {
      const auto& spans = expected[static_cast<std::size_t>(d)];
      EXPECT_EQ(r.times(d).spans, spans) << "device " << d << " of " << c.topology.size();
      for (const Span& s : spans) end = std::max(end, s.end);
    }
    EXPECT_EQ(r.makespan.value, end);
  }
}

TEST(EventLoop, FoldedEqualsUnfolded) {
  for (const Case& c : cases()) {
    const Plan plan = compile(c.job).plan;
    const SimResult folded = simulate(plan, "train", c.job.supernode, c.topology);
    const SimResult unfolded = simulate(plan, "train", c.job.supernode, c.topology, {.fold = false});
    EXPECT_EQ(unfolded.classes.size(), static_cast<std::size_t>(c.topology.size()));
    for (int d = 0; d < c.topology.size(); ++d)
      EXPECT_EQ(folded.traced(d, plan.roles[0].program("train")),
                unfolded.traced(d, plan.roles[0].program("train")))
          << "device " << d;
  }
}

TEST(EventLoop, DevicesThatAreAlikeAreWalkedOnce) {
  for (const Case& c : cases()) {
    const SimResult r = simulate(compile(c.job).plan, "train", c.job.supernode, c.topology);
    const bool regular =
        c.topology == Topology::uniform(c.topology.hosts(), c.topology.size() / c.topology.hosts());
    EXPECT_EQ(r.classes.size() == 1, regular);
  }
}

// All devices wait for a slower one; with jitter the same seed gives the same times.
TEST(EventLoop, StragglersAndJitter) {
  Job job = small_job(2, 2, {"sp"});
  const Plan plan = compile(job).plan;
  const Topology topology = Topology::one_host(4);
  const auto with = [&](const SimOptions& options) {
    return simulate(plan, "train", job.supernode, topology, options);
  };
  const SimResult even = with({}), slow = with({.slow = {{3, 2.0}}});
  EXPECT_EQ(even.classes.size(), 1u);
  EXPECT_EQ(slow.classes.size(), 4u) << "whom device 3 meets, along one axis or the other, or not at all";
  EXPECT_EQ(with({.fold = false, .slow = {{3, 2.0}}}).times(0), slow.times(0));
  const Nanos computing = even.times(3).busy[0] + even.times(3).busy[1];
  EXPECT_EQ(slow.times(3).busy[0] + slow.times(3).busy[1], computing * 2);
  EXPECT_GT(slow.makespan, even.makespan);
  EXPECT_LE(slow.makespan - even.makespan, computing);
  EXPECT_GT(slow.breakdown(0).bubble, even.breakdown(0).bubble);

  const SimResult jittered = with({.jitter = 0.1, .seed = 7});
  EXPECT_EQ(jittered.classes.size(), 4u);
  EXPECT_EQ(with({.jitter = 0.1, .seed = 7}).times(2), jittered.times(2));
  EXPECT_NE(with({.jitter = 0.1, .seed = 8}).makespan, jittered.makespan);
  EXPECT_NE(jittered.times(0).spans, jittered.times(1).spans);
  EXPECT_GT(jittered.makespan, even.makespan) << "each group waits for its slowest";
}

// All devices differ because 0 and 1 share a host: 2 and 3 meet them along b, 4 and 5 along a, and 6 and 7
// only the others.
TEST(EventLoop, WhoMeetsOthersIsNotAlike) {
  using enum instr::CollectiveKind;
  const Plan plan = ProgramBuilder({{"a", 2}, {"b", 2}, {"c", 2}})
                        .collective(kAllReduce, {2}, 512)
                        .collective(kAllReduce, {1}, 512)
                        .collective(kAllReduce, {0}, 512)
                        .collective(kAllReduce, {2}, 512)
                        .plan();
  const Topology topology{{0, 0, 1, 2, 3, 4, 5, 6}};
  const SupernodeSpec spec;
  const SimResult r = simulate(plan, "test", spec, topology);
  EXPECT_EQ(r.class_of, (std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3}));
  const auto expected = expected_spans(plan.roles[0].programs[0], spec, topology);
  for (int d = 0; d < 8; ++d)
    EXPECT_EQ(r.times(d).spans, expected[static_cast<std::size_t>(d)]) << "device " << d;
}

TEST(EventLoop, TimesAddUp) {
  for (const Case& c : cases()) {
    const SimResult r = simulate(compile(c.job).plan, "train", c.job.supernode, c.topology);
    for (const SimTimes& t : r.classes) {
      Nanos compute = t.busy[0] + t.busy[1];
      for (const Nanos busy : t.busy) EXPECT_LE(busy, r.makespan);
      EXPECT_GE(compute + t.exposed, t.end) << "something runs at any time";
      EXPECT_LE(t.exposed, t.busy[static_cast<std::size_t>(StreamKind::kComm)]);
      EXPECT_LE(std::max(t.busy[0], t.busy[1]) + t.exposed, t.end);
    }
  }
}

TEST(EventLoop, TheStepIsTheSumOfItsParts) {
  for (const Case& c : cases()) {
    const SimResult r = simulate(compile(c.job).plan, "train", c.job.supernode, c.topology);
    for (std::size_t k = 0; k < r.parts.size(); ++k) {
      const Breakdown& b = r.parts[k];
      EXPECT_EQ(b.compute + b.optimizer + b.communication + b.transfer + b.bubble, r.makespan);
      EXPECT_LE(b.communication, r.classes[k].exposed) << "which counts waiting for the group as well";
      EXPECT_GT(b.optimizer, Nanos(0));
    }
  }
}

TEST(EventLoop, MessagesBetweenStagesAreCommunication) {
  const Job job = small_job("pp:2");
  const SimResult r = simulate(compile(job).plan, "train", job.supernode, Topology{{0, 1}});
  for (std::size_t k = 0; k < r.parts.size(); ++k) {
    EXPECT_EQ(r.parts[k].transfer, Nanos(0)) << "no text is one";
    EXPECT_GT(r.parts[k].communication, Nanos(0));
  }
}

// Input is read on the stream of transfers, and is no transfer.
TEST(EventLoop, AGenerationThatMovesNothingOnlyComputes) {
  Job job = small_job("dp:1");
  job.run.generate.tokens = 8;
  const Plan plan = compile_generation(job).plan;
  for (const char* pass : {"prefill", "decode"}) {
    const SimResult r = simulate(plan, pass, job.supernode, Topology::one_host(1));
    EXPECT_GT(r.classes[0].busy[static_cast<std::size_t>(StreamKind::kDmaIn)], Nanos(0));
    EXPECT_EQ(r.breakdown(0), Breakdown{.compute = r.makespan}) << pass;
  }
}

TEST(EventLoop, AFasterMachineIsNeverSlower) {
  for (const Case& c : cases()) {
    const Plan plan = compile(c.job).plan;
    const Nanos base = simulate(plan, "train", c.job.supernode, c.topology).makespan;
    const auto with = [&](auto change) {
      SupernodeSpec spec = c.job.supernode;
      change(spec);
      return simulate(plan, "train", spec, c.topology).makespan;
    };
    EXPECT_LE(with([](auto& s) { s.cube_flops *= 3; }), base);
    EXPECT_LE(with([](auto& s) { s.vector_flops *= 3; }), base);
    EXPECT_LT(with([](auto& s) { s.hbm_bandwidth *= 3; }), base);
    EXPECT_LE(with([](auto& s) { s.link_bandwidth *= 3; }), base);
    EXPECT_LE(with([](auto& s) { s.link_latency = s.link_latency / 3; }), base);
    EXPECT_LT(with([](auto& s) { s.launch_latency = Nanos(0); }), base);
    EXPECT_GT(with([](auto& s) { s.cube_flops /= 1000; }), base);
  }
}

TEST(EventLoop, LiveBytesOverTimeStayWithinThePeak) {
  for (const Case& c : cases()) {
    const Plan plan = compile(c.job).plan;
    const SimResult r = simulate(plan, "train", c.job.supernode, c.topology);
    const InvocationStats s = r.traced(0, plan.roles[0].program("train"));
    ASSERT_FALSE(s.live[0].empty());
    EXPECT_TRUE(std::is_sorted(s.live[0].begin(), s.live[0].end(),
                               [](auto& a, auto& b) { return a.first < b.first; }));
    std::int64_t state = 0, most = 0;
    for (const Buffer& b : plan.roles[0].program("train").buffers) state += b.state ? b.bytes.value : 0;
    for (const auto& [time, bytes] : s.live[0]) {
      EXPECT_GE(bytes, state);
      most = std::max(most, bytes);
    }
    EXPECT_LE(most, s.high_water[0].value);
    EXPECT_EQ(s.live[0].back().second, state) << "only the state outlives the Program";
    EXPECT_LE(s.live_peak, s.high_water[0]);
    Bytes sum;
    for (const Bytes b : s.live_at_peak) sum += b;
    EXPECT_EQ(sum, s.live_peak);
  }
}

// One device recomputes only the scores of attention in the backward pass: one product of the seven.
TEST(Forecast, FlopsOfTheModelAndOfTheMachine) {
  const Job job = small_job(1, 1);
  const JobForecast f = forecast(job, compile(job).plan, Topology::one_host(1));
  const std::int64_t tokens = 8 * 32;
  const std::int64_t weights = 2 * (64 * 64 * 2 + 64 * 32 * 2 + 64 * 128 * 3) + 64 * 320;
  EXPECT_EQ(f.model_flops, static_cast<double>(6 * tokens * weights + 2 * 6 * 8 * 8 * 8 * 32 * 32));
  EXPECT_EQ(f.train.matrix_flops - f.model_flops, static_cast<double>(2 * 8 * 8 * 8 * 32 * 32));
  EXPECT_LT(f.mfu, f.hfu);
  EXPECT_GT(f.mfu, 0);
  EXPECT_LT(f.hfu, 1);
}

// Only the scores are recomputed here, too; each of the machine's products counts with its own sizes.
TEST(Forecast, FlopsOfLatentAttentionAndExperts) {
  Job job = small_job(1, 1);
  become_deepseek(job);
  const JobForecast f = forecast(job, compile(job).plan, Topology::one_host(1));
  const std::int64_t layers = 3, sequences = 8, heads = 8, head_dim = 12;
  EXPECT_EQ(f.train.matrix_flops - f.model_flops,
            static_cast<double>(layers * sequences * heads * 32 * 32 * head_dim));
}

// Half of the choices exceed the capacity and are not computed.
TEST(Forecast, FlopsOfExpertsThatDropTokens) {
  Job job = small_job(1, 1);
  become_deepseek(job);
  const auto left_over = [&](double factor) {
    job.model.experts.capacity.factor = factor;
    const JobForecast f = forecast(job, compile(job).plan, Topology::one_host(1));
    return f.train.matrix_flops - f.model_flops;
  };
  EXPECT_EQ(left_over(0.5), left_over(1));
}

// A GELU has two matrices, a SwiGLU three.
TEST(Forecast, FlopsOfAGpt) {
  Job job = small_job(1, 1);
  become_gpt2(job);
  const JobForecast f = forecast(job, compile(job).plan, Topology::one_host(1));
  EXPECT_EQ(f.train.matrix_flops - f.model_flops, static_cast<double>(2 * 8 * 8 * 8 * 32 * 32));
}

TEST(Forecast, StepsAndTokens) {
  Job job = small_job(2, 2);
  job.training.steps = 100;
  const JobForecast f = forecast(job, compile(job).plan, Topology::one_host(4));
  EXPECT_EQ(f.step, f.train.makespan);
  EXPECT_EQ(f.total, f.init.makespan + f.step * 100);
  EXPECT_DOUBLE_EQ(f.tokens_per_second, 8 * 32 / (static_cast<double>(f.step.value) * 1e-9));
  EXPECT_EQ(f.model_flops,
            forecast(small_job(1, 1), compile(small_job(1, 1)).plan, Topology::one_host(1)).model_flops);
}

// A legal number of steps, each of a legal length, whose total exceeds any number of nanoseconds.
TEST(Forecast, OfMoreThanCenturiesIsRefused) {
  Job job = small_job("dp:1");
  job.supernode.cube_flops = 1e5;
  job.training.steps = 1'000'000'000;
  const Plan plan = compile(job).plan;
  const Error e = error_of([&] { forecast(job, plan, Topology::one_host(1)); });
  EXPECT_EQ(e.code(), Code::kBadValue);
  EXPECT_EQ(e.place(), "training.steps");
  EXPECT_NE(e.legal().find("up to "), std::string::npos);
}

}  // namespace
}  // namespace hyperrun::testing

// A device whose feeder hands over its instructions one by one: each span against a recurrence over the
// Program.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/compile/compile.h"
#include "runtime/sim/simulate.h"
#include "tests/sim/programs.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

// The recurrence for one of several devices that are alike, without messages between stages.
std::vector<Span> account(const Program& program, const std::vector<Nanos>& durations,
                          const Machine& machine) {
  const Feeder& feeder = machine.feeder;
  std::vector<Span> spans;
  std::array<std::vector<std::int64_t>, kStreams> ends;  // of each stream's instructions
  std::int64_t handed = 0, all = 0;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    const auto* c = std::get_if<instr::Collective>(&instr.op);
    const bool loads = std::holds_alternative<instr::LoadBatch>(instr.op);
    if (loads || std::holds_alternative<instr::TokenLoss>(instr.op)) handed = std::max(handed, all);
    const bool attention = name(instr.op).starts_with("Attention");
    handed += std::llround((instr.pass == Pass::kForward ? feeder.forward : feeder.backward).value) *
              std::llround(attention ? machine.scores.kernels.value : 1);
    if (loads) handed += std::llround(feeder.micro_batch.value);
    if (c != nullptr)
      handed += std::llround(feeder.member.value * static_cast<double>(program.mesh.size(c->axes)));
    std::int64_t begin = handed;
    if (feeder.in_order) begin = std::max(begin, all);
    auto& stream = ends[static_cast<std::size_t>(instr.stream)];
    if (!stream.empty()) begin = std::max(begin, stream.back());
    for (const Event& e : instr.waits)
      begin = std::max(begin, ends[static_cast<std::size_t>(e.stream)][static_cast<std::size_t>(e.seq) - 1]);
    stream.push_back(begin + durations[i].value);
    all = std::max(all, stream.back());
    spans.push_back({begin, stream.back()});
  }
  return spans;
}

Feeder feeder_of(double forward, double backward, double member, double micro_batch, bool in_order) {
  Feeder f;
  f.forward.value = forward, f.backward.value = backward;
  f.member.value = member, f.micro_batch.value = micro_batch;
  f.in_order = in_order;
  return f;
}

class FedBy : public ::testing::TestWithParam<Feeder> {};

TEST_P(FedBy, EverySpanIsAsReckoned) {
  for (const char* parallel : {"", "dp:2 tp:2 sp", "dp:4 zero3"}) {
    Job job = small_job(parallel);
    job.training.micro_batches = 2;
    job.training.recompute = {{"full", 0, job.model.layers - 1}};
    Machine machine = machine_of(job.supernode);
    machine.feeder = GetParam();
    machine.scores.kernels.value = 5;
    job.supernode.machine = machine;
    const Topology topology = Topology::one_host(job.supernode.devices);
    const Plan plan = compile(job).plan;
    const SimResult r = simulate(plan, "train", job.supernode, topology);
    const auto expected = account(plan.roles[0].program("train"),
                                  durations(plan, "train", job.supernode, topology, 0), machine);
    EXPECT_EQ(r.times(0).spans, expected) << parallel;
  }
}

INSTANTIATE_TEST_SUITE_P(Feeders, FedBy,
                         ::testing::Values(feeder_of(0, 0, 0, 0, true), feeder_of(3000, 1000, 0, 0, false),
                                           feeder_of(100, 40'000, 500, 100'000, false),
                                           feeder_of(20'000, 5000, 7000, 1'000'000, true)));

// Instructions with turns are never under way at once; a pipeline's messages still are.
TEST(Feeder, InOrderNothingOverlapsButMessages) {
  Job job = small_job("pp:2 dp:2");
  job.training.micro_batches = 4;
  Machine machine = machine_of(job.supernode);
  machine.feeder.in_order = true;
  job.supernode.machine = machine;
  const Plan plan = compile(job).plan;
  const SimResult r = simulate(plan, "train", job.supernode, Topology::one_host(4));
  for (int d = 0; d < 4; ++d) {
    std::vector<Span> turns;
    const auto& instrs = plan.of_device(d).program("train").instrs;
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      const auto* c = std::get_if<instr::Collective>(&instrs[i].op);
      if (c == nullptr || !instr::is_message(c->kind)) turns.push_back(r.times(d).spans[i]);
    }
    EXPECT_TRUE(std::ranges::is_sorted(turns, {}, &Span::begin));
    for (std::size_t i = 1; i < turns.size(); ++i) ASSERT_GE(turns[i].begin, turns[i - 1].end) << i;
  }
}

// An instruction that uses a message is handed over when it has come, and takes its time from then on. The
// first use of a message of the forward pass begins a micro-batch on a stage that loads nothing.
TEST(Feeder, WaitsForWhatComes) {
  Job job = small_job("pp:4");
  set_layers(job, 4);
  job.training.micro_batches = 4;
  Machine machine = machine_of(job.supernode);
  machine.feeder = feeder_of(3000, 1000, 0, 50'000, true);
  job.supernode.machine = machine;
  const Plan plan = compile(job).plan;
  const SimResult r = simulate(plan, "train", job.supernode, Topology::one_host(4));
  int uses = 0;
  for (int d = 0; d < 4; ++d) {
    const auto& instrs = plan.of_device(d).program("train").instrs;
    const auto& spans = r.times(d).spans;
    std::vector<std::size_t> messages;  // messages received, in their order
    std::int32_t used = 0;
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      if (instrs[i].stream == StreamKind::kRecv) messages.push_back(i);
      for (const Event& e : instrs[i].waits) {
        if (e.stream != StreamKind::kRecv || e.seq <= used) continue;
        used = e.seq;
        const std::size_t message = messages[static_cast<std::size_t>(used) - 1];
        const bool begins = (d == 1 || d == 2) && instrs[message].pass == Pass::kForward;
        const std::int64_t handed = (instrs[i].pass == Pass::kForward ? 3000 : 1000) + (begins ? 50'000 : 0);
        EXPECT_GE(spans[i].begin, spans[message].end + handed) << "device " << d << ", instruction " << i;
        ++uses;
      }
    }
  }
  EXPECT_GE(uses, 3 * 2 * 4) << "each way between stages";
}

// Hosts of two pipelines wait for messages: a step is no shorter than without a feeder, and longer by at most
// the slowest host's time.
TEST(Feeder, ItCostsAtMostItsTime) {
  Job job = small_job("pp:2");
  job.training.micro_batches = 4;
  const Plan plan = compile(job).plan;
  const Topology topology = Topology::one_host(2);
  const Nanos without = simulate(plan, "train", job.supernode, topology).makespan;
  Machine machine = machine_of(job.supernode);
  machine.feeder = feeder_of(2000, 2000, 0, 50'000, false);
  job.supernode.machine = machine;
  const Nanos with = simulate(plan, "train", job.supernode, topology).makespan;
  std::int64_t feeding = 0;
  for (const Role& role : plan.roles)
    feeding += 2000 * std::ssize(role.program("train").instrs) + 4 * 50'000 * 2;
  EXPECT_GT(with, without);
  EXPECT_LE(with, without + Nanos(feeding));
}

}  // namespace
}  // namespace hyperrun::testing

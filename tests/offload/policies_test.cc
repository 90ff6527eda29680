// Offload policies on random Programs: each plan verifies and fits its budget, and planning ahead is no
// slower than LRU.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "runtime/offload/local_search.h"
#include "runtime/offload/plan_evaluator.h"
#include "runtime/offload/policy.h"
#include "tests/offload/random_programs.h"

namespace hyperrun::testing {
namespace {

TEST(OffloadPlan, VerifiesFitsTheBudgetAndIsNotSlowerThanLru) {
  int compared = 0, sooner = 0;
  std::size_t rematerialized = 0;
  double gained = 0, added = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Setting s{RandomProgram(seed, 10 + static_cast<int>(seed % 60), static_cast<int>(seed % 5)).take()};
    const Outcome kept = outcome(s.program, s.uses, {});
    for (const double share : {0.9, 0.7, 0.5}) {
      const Bytes budget(static_cast<std::int64_t>(share * static_cast<double>(kept.peak.value)));
      const auto planned = s.planned(budget), reacted = s.by(lru_policy, budget, s.timeline);
      const auto rematerialized_plan = s.by(rematerialize_policy, budget, s.timeline);
      for (const auto& one : {planned, reacted, rematerialized_plan})
        EXPECT_TRUE(!one || one->seen == kept.seen) << "seed " << seed << " share " << share;
      rematerialized += rematerialized_plan ? rematerialized_plan->rematerialized : 0;
      if (!planned || !reacted) continue;
      ++compared;
      sooner += planned->length() < reacted->length();
      gained += static_cast<double>(reacted->length()) / static_cast<double>(planned->length());
      added += static_cast<double>(planned->length()) / static_cast<double>(kept.length()) - 1;
      EXPECT_LE(planned->length(), reacted->length()) << "seed " << seed << " share " << share;
    }
  }
  EXPECT_GT(compared, 250);
  EXPECT_GT(sooner, compared * 3 / 4);
  // best_plan_test.cc compares with the best possible plans of small Programs.
  EXPECT_GT(gained / compared, 1.08);
  EXPECT_LT(added / compared, 0.1);
  EXPECT_GT(rematerialized, 100U);
  RecordProperty("sooner", std::to_string(sooner) + " of " + std::to_string(compared));
  RecordProperty("gained", std::to_string(gained / compared));
}

// If even the lowest live peak exceeds the target, every movable buffer is in HBM only while it is used.
TEST(OffloadPlan, EvictsEverythingIfTheTargetIsTooLow) {
  std::size_t away = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Setting s{RandomProgram(seed, 10 + static_cast<int>(seed % 60), static_cast<int>(seed % 5)).take()};
    const auto last = static_cast<std::int32_t>(s.program.instrs.size());
    for (const auto policy : {gap_policy, hidden_state_policy})
      for (const Eviction& a : policy(s.problem(Bytes(0))).evictions) {
        if (a.producer >= 0) continue;
        const std::vector<Access>& accesses = s.uses[static_cast<std::size_t>(a.buffer)].accesses;
        const auto next = static_cast<std::size_t>(a.after + 1);
        EXPECT_EQ(a.leaves, a.after < 0 ? -1 : accesses[next - 1].instr) << "seed " << seed;
        EXPECT_EQ(a.returns, next < accesses.size() ? accesses[next].instr : last) << "seed " << seed;
        ++away;
      }
  }
  EXPECT_GT(away, 1000U);
}

// Lets some operands cover only a part of their buffers.
void use_parts(Program& program, unsigned seed) {
  std::mt19937_64 random(seed);
  for (Instr& instr : program.instrs)
    for (Operand& o : instr.in) {
      if (random() % 3 != 0) continue;
      const std::int64_t lines = o.bytes.value / 64;
      o.offset = Bytes(64 * static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(lines)));
      o.bytes -= o.offset;
    }
}

TEST(OffloadPlan, IsEvaluatedAsItRuns) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    Program program =
        RandomProgram(2000 + seed, 10 + static_cast<int>(seed % 60), static_cast<int>(seed % 5)).take();
    use_parts(program, seed);
    if (seed % 3 == 0) program = with_room_to_spare(std::move(program), seed);
    const Setting s{std::move(program)};
    const Outcome kept = outcome(s.program, s.uses, {});
    const PlanEvaluator evaluator(s.program, s.uses, durations(s.program), transfer, Bytes(64));
    for (const auto policy :
         {gap_policy, hidden_state_policy, rematerialize_policy, slack_policy, belady_policy, lru_policy}) {
      const Bytes target(kept.peak.value * 6 / 10);
      const OffloadPlan plan = policy(s.problem(target));
      Bytes state{};
      for (std::size_t b = 0; b < s.program.buffers.size(); ++b)
        if (s.program.buffers[b].state &&
            !std::ranges::binary_search(plan.offloaded_state, static_cast<std::int32_t>(b)))
          state += s.program.buffers[b].bytes;
      const Bytes least = outcome(s.program, s.uses, plan).peak;
      for (const Bytes budget : {least, least + least / 8}) {
        const Outcome real = outcome(s.program, s.uses, plan, budget);
        const PlanEvaluator::Outcome evaluated = evaluator.evaluate(plan, state, budget);
        EXPECT_EQ(evaluated.peak, real.peak) << seed;
        EXPECT_EQ(evaluated.timeline.length, real.length()) << seed;
        EXPECT_EQ(evaluated.timeline.begin, real.timeline.begin) << seed;
        EXPECT_EQ(evaluated.timeline.end, real.timeline.end) << seed;
      }
      EXPECT_GT(evaluator.evaluate(plan, state, least - Bytes(64)).peak, least - Bytes(64)) << seed;
    }
  }
}

// Half of the buffers are mostly empty. Planning for the bytes that move beats planning for their full size.
TEST(OffloadPlan, UsesTheBytesExpectedToMove) {
  for (const auto policy : {gap_policy, hidden_state_policy, slack_policy}) {
    std::int64_t planned = 0, by_room = 0;
    for (unsigned seed = 0; seed < 80; ++seed) {
      const Program full = RandomProgram(7000 + seed, 60, 2).take();
      const Setting s{with_room_to_spare(full, seed)}, filled{full};
      const Bytes target(outcome(s.program, s.uses, {}).peak.value * 6 / 10);
      planned += outcome(s.program, s.uses, policy(s.problem(target))).length();
      by_room += outcome(s.program, s.uses, policy(filled.problem(target))).length();
    }
    EXPECT_LT(planned, by_room);
  }
}

// A chain of tensors, each computed from the one before; then work that leaves room for the first only; then
// a use of each, the last one first.
Program chain(int length, std::int64_t bytes) {
  Program p;
  p.mesh.axes = {{"dp", 1}};
  const auto add = [&](std::int64_t nanos, std::int64_t size, std::vector<Operand> in) {
    Buffer b;
    b.name = "t" + std::to_string(p.instrs.size());
    b.bytes = Bytes(size);
    b.category = Category::kActivations;
    p.buffers.push_back(b);
    Instr instr;
    instr.op = instr::Fill{nanos, 0};
    instr.in = std::move(in);
    instr.out = {{BufferId(std::ssize(p.buffers) - 1), Bytes(0), Bytes(size)}};
    instr.origin = static_cast<std::int32_t>(p.instrs.size());
    p.origins.push_back("node" + std::to_string(p.instrs.size()));
    p.instrs.push_back(std::move(instr));
    return p.instrs.back().out[0];
  };
  std::vector<Operand> line{add(100, bytes, {})};
  for (int i = 1; i < length; ++i) line.push_back(add(100, bytes, {line.back()}));
  for (int i = 0; i < 3; ++i) add(10'000, length * bytes, {});
  for (int i = length - 1; i >= 0; --i) add(100, 64, {line[static_cast<std::size_t>(i)]});
  return p;
}

// The inputs of a rematerialization are rematerialized before it, although their own next use is later.
TEST(OffloadPlan, RematerializesAWholeChain) {
  for (const int length : {2, 3, 4, 6}) {
    constexpr std::int64_t kBytes = 64 * 1024;  // a transfer takes 327 times as long as computing them
    const Setting s{chain(length, kBytes)};
    const auto rematerialized_plan =
        s.by(rematerialize_policy, Bytes((length + 1) * kBytes + 4096), s.timeline);
    ASSERT_TRUE(rematerialized_plan) << length;
    EXPECT_EQ(rematerialized_plan->seen, outcome(s.program, s.uses, {}).seen) << length;
    EXPECT_EQ(rematerialized_plan->rematerialized, static_cast<std::size_t>(length - 1));
  }
}

// State is read and later overwritten without being read, like a tied weight by the message with its new
// value. In between nothing fetches it, so no rematerialization may read it there.
TEST(OffloadPlan, RematerializesNothingFromInputsThatAreOnlyOverwritten) {
  Program p = chain(2, 64 * 1024);
  Buffer state;
  state.name = "state";
  state.bytes = Bytes(64 * 1024);
  state.category = Category::kWeights;
  state.state = true;
  p.buffers.push_back(state);
  const Operand whole{BufferId(std::ssize(p.buffers) - 1), Bytes(0), state.bytes};
  p.instrs[0].in = {whole};
  Instr arrives = p.instrs.back();
  arrives.in = {};
  arrives.out = {whole};
  p.instrs.push_back(std::move(arrives));
  const Setting s{std::move(p)};
  const Outcome kept = outcome(s.program, s.uses, {});
  // The state is offloaded.
  const auto id = static_cast<std::int32_t>(whole.buffer.value);
  const OffloadPlan plan =
      rematerialize_policy({s.program, s.uses, s.timeline, transfer, Bytes(4096), {id}, true});
  EXPECT_EQ(outcome(s.program, s.uses, plan).seen, kept.seen);
  EXPECT_GT(plan.evictions.size(), 1U);
}

// Local search gives up at once if trying each gap once would take too long, as in a step of many
// micro-batches. Listing every choice of every gap would take hours here.
TEST(OffloadPlan, IsNotImprovedForALongProgram) {
  const Setting s{RandomProgram(1, 20'000, 0).take()};
  const PlanEvaluator evaluator(s.program, s.uses, durations(s.program), transfer, Bytes(64));
  EXPECT_EQ(improved(evaluator, {}, Bytes(0), Bytes(64), 40'000), OffloadPlan{});
}

}  // namespace
}  // namespace hyperrun::testing

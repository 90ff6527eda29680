// Plans on made-up Programs: each verifies and stays within its budget, planning ahead is not worse than
// reacting.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "runtime/offload/policy.h"
#include "runtime/offload/polish.h"
#include "runtime/offload/rehearsal.h"
#include "tests/offload/made_up.h"

namespace hyperrun::testing {
namespace {

TEST(OffloadPlan, VerifiesAndKeepsToTheBudgetAndIsNotWorseThanReacting) {
  int compared = 0, sooner = 0;
  std::size_t made_again = 0;
  double gained = 0, added = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Setting s{RandomProgram(seed, 10 + static_cast<int>(seed % 60), static_cast<int>(seed % 5)).take()};
    const Outcome kept = outcome(s.program, s.uses, {});
    for (const double share : {0.9, 0.7, 0.5}) {
      const Bytes budget(static_cast<std::int64_t>(share * static_cast<double>(kept.peak.value)));
      const auto planned = s.planned(budget), reacted = s.by(react, budget, s.timeline);
      const auto remade = s.by(plan_by_remaking, budget, s.timeline);
      for (const auto& one : {planned, reacted, remade})
        EXPECT_TRUE(!one || one->seen == kept.seen) << "seed " << seed << " share " << share;
      made_again += remade ? remade->made_again : 0;
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
  // Best plans of small programs say how good that is (best_plan_test.cc).
  EXPECT_GT(gained / compared, 1.08);
  EXPECT_LT(added / compared, 0.1);
  EXPECT_GT(made_again, 100U);
  RecordProperty("sooner", std::to_string(sooner) + " of " + std::to_string(compared));
  RecordProperty("gained", std::to_string(gained / compared));
}

// Where even the least is over the target nothing that may be away is there, but while it is used.
TEST(OffloadPlan, IsAwayAllTheTimeWhereThatIsTooLittle) {
  std::size_t away = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Setting s{RandomProgram(seed, 10 + static_cast<int>(seed % 60), static_cast<int>(seed % 5)).take()};
    const auto last = static_cast<std::int32_t>(s.program.instrs.size());
    for (const auto policy : {plan_by_gaps, plan_by_hiding})
      for (const Absence& a : policy(s.problem(Bytes(0))).list) {
        if (a.maker >= 0) continue;
        const std::vector<Access>& accesses = s.uses[static_cast<std::size_t>(a.buffer)].accesses;
        const auto next = static_cast<std::size_t>(a.after + 1);
        EXPECT_EQ(a.leaves, a.after < 0 ? -1 : accesses[next - 1].instr) << "seed " << seed;
        EXPECT_EQ(a.returns, next < accesses.size() ? accesses[next].instr : last) << "seed " << seed;
        ++away;
      }
  }
  EXPECT_GT(away, 1000U);
}

// Made-up Programs have operands that are parts of buffers, too.
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

TEST(OffloadPlan, IsRehearsedAsItComesTrue) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    Program program =
        RandomProgram(2000 + seed, 10 + static_cast<int>(seed % 60), static_cast<int>(seed % 5)).take();
    use_parts(program, seed);
    if (seed % 3 == 0) program = with_room_to_spare(std::move(program), seed);
    const Setting s{std::move(program)};
    const Outcome kept = outcome(s.program, s.uses, {});
    const Rehearsal rehearsal(s.program, s.uses, durations(s.program), transfer, Bytes(64));
    for (const auto policy :
         {plan_by_gaps, plan_by_hiding, plan_by_remaking, plan_by_streams, plan_by_next_use, react}) {
      const Bytes target(kept.peak.value * 6 / 10);
      const Absences absences = policy(s.problem(target));
      Bytes state{};
      for (std::size_t b = 0; b < s.program.buffers.size(); ++b)
        if (s.program.buffers[b].state &&
            !std::ranges::binary_search(absences.homes, static_cast<std::int32_t>(b)))
          state += s.program.buffers[b].bytes;
      const Bytes least = outcome(s.program, s.uses, absences).peak;
      for (const Bytes budget : {least, least + least / 8}) {
        const Outcome real = outcome(s.program, s.uses, absences, budget);
        const Rehearsal::Outcome rehearsed = rehearsal.of(absences, state, budget);
        EXPECT_EQ(rehearsed.peak, real.peak) << seed;
        EXPECT_EQ(rehearsed.timeline.length, real.length()) << seed;
        EXPECT_EQ(rehearsed.timeline.begin, real.timeline.begin) << seed;
        EXPECT_EQ(rehearsed.timeline.end, real.timeline.end) << seed;
      }
      EXPECT_GT(rehearsal.of(absences, state, least - Bytes(64)).peak, least - Bytes(64)) << seed;
    }
  }
}

// Planned as if all the room were moved, the same Programs take longer.
TEST(OffloadPlan, GoesByWhatIsExpectedToMove) {
  for (const auto policy : {plan_by_gaps, plan_by_hiding, plan_by_streams}) {
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

// A line of tensors, each made of the one before; then work that leaves room for the first alone; then they
// are used, the last one first.
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

// What makes a tensor again is itself made again before it, though its own next use is later.
TEST(OffloadPlan, MakesAWholeChainAgain) {
  for (const int length : {2, 3, 4, 6}) {
    constexpr std::int64_t kBytes = 64 * 1024;  // of which a transfer lasts 327 times as long as making them
    const Setting s{chain(length, kBytes)};
    const auto remade = s.by(plan_by_remaking, Bytes((length + 1) * kBytes + 4096), s.timeline);
    ASSERT_TRUE(remade) << length;
    EXPECT_EQ(remade->seen, outcome(s.program, s.uses, {}).seen) << length;
    EXPECT_EQ(remade->made_again, static_cast<std::size_t>(length - 1));
  }
}

// A state is read, and later overwritten by what does not read it, as a tied weight is by its new value's
// message. In between nothing fetches it, so nothing is made again from it there.
TEST(OffloadPlan, MakesNothingAgainFromWhatIsOnlyWrittenNext) {
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
  // The state's home is beyond HBM.
  const auto id = static_cast<std::int32_t>(whole.buffer.value);
  const Absences plan = plan_by_remaking({s.program, s.uses, s.timeline, transfer, Bytes(4096), {id}, true});
  EXPECT_EQ(outcome(s.program, s.uses, plan).seen, kept.seen);
  EXPECT_GT(plan.list.size(), 1U);
}

// Where trying each gap once takes too long already, as in a step of many micro-batches, that is found at
// once: looking at each window of each gap would take hours here.
TEST(OffloadPlan, OfALongProgramIsNotPolished) {
  const Setting s{RandomProgram(1, 20'000, 0).take()};
  const Rehearsal rehearsal(s.program, s.uses, durations(s.program), transfer, Bytes(64));
  EXPECT_EQ(polished(rehearsal, {}, Bytes(0), Bytes(64), 40'000), Absences{});
}

}  // namespace
}  // namespace hyperrun::testing

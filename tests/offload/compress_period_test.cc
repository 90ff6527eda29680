// Programs whose middle repeats: compression gives a Program of fewer periods. An expanded plan verifies,
// fits and is as fast as a plan made for the whole Program.
#include "runtime/offload/compress_period.h"

#include <gtest/gtest.h>

#include "runtime/compile/events.h"
#include "runtime/compile/place.h"
#include "runtime/offload/apply.h"
#include "runtime/offload/plan_evaluator.h"
#include "runtime/offload/policy.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kBytes = 64 * 1024;
const std::vector<Category> kAll{Category::kActivations, Category::kGradients, Category::kOptimizer};

Nanos transfer(Bytes b) { return Nanos(10 + b.value / 20); }

// A stage of a pipeline. Each micro-batch runs forward through the layers and `behind` micro-batches later
// backward. Gradients are summed by layer, and the optimizer runs at the end.
class Stage {
 public:
  Stage(int layers, int behind, int micro_batches, int odd = -1) : layers_(layers) {
    program_.mesh.axes = {{"dp", 1}};
    for (int l = 0; l < layers; ++l) {
      weights_.push_back(add_buffer("w", Category::kWeights, true));
      moments_.push_back(add_buffer("m", Category::kOptimizer, true));
    }
    for (int m = 0; m < micro_batches + behind; ++m) {
      if (m < micro_batches) forward(m == odd ? 1700 : 1000);
      if (m >= behind) backward(m - behind);
    }
    for (int l = 0; l < layers; ++l)
      add(300, {sums_[at(l)], moments_[at(l)]}, {weights_[at(l)], moments_[at(l)]});
  }

  Program take() && { return std::move(program_); }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  Operand add_buffer(const std::string& name, Category category, bool state) {
    Buffer b;
    b.name = name + std::to_string(program_.buffers.size());
    b.bytes = Bytes(kBytes);
    b.category = category;
    b.state = state;
    program_.buffers.push_back(b);
    return {BufferId(std::ssize(program_.buffers) - 1), Bytes(0), b.bytes};
  }

  void add(std::int64_t nanos, std::vector<Operand> in, std::vector<Operand> out) {
    Instr instr;
    instr.op = instr::Fill{nanos, 0};
    instr.in = std::move(in);
    instr.out = std::move(out);
    instr.origin = static_cast<std::int32_t>(program_.instrs.size());
    program_.origins.push_back("node" + std::to_string(program_.instrs.size()));
    program_.instrs.push_back(std::move(instr));
  }

  void forward(std::int64_t nanos) {
    std::vector<Operand>& made = activations_.emplace_back();
    for (int l = 0; l < layers_; ++l) {
      std::vector<Operand> in{weights_[at(l)]};
      if (l > 0) in.push_back(made.back());
      made.push_back(add_buffer("a", Category::kActivations, false));
      add(nanos, std::move(in), {made.back()});
    }
  }

  void backward(int m) {
    for (int l = layers_; l-- > 0;) {
      const Operand gradient = add_buffer("g", Category::kGradients, false);
      add(2000, {activations_[at(m)][at(l)], weights_[at(l)]}, {gradient});
      if (m == 0) sums_.insert(sums_.begin(), add_buffer("s", Category::kGradients, false));
      std::vector<Operand> in{gradient};
      if (m > 0) in.push_back(sums_[at(l)]);
      add(200, std::move(in), {m > 0 ? sums_[at(l)] : sums_.front()});
    }
  }

  int layers_;
  Program program_;
  std::vector<Operand> weights_, moments_, sums_;  // by layer; sums exist after the first backward pass
  std::vector<std::vector<Operand>> activations_;  // by micro-batch and layer
};

std::vector<Nanos> durations(const Program& program) {
  std::vector<Nanos> list;
  for (const Instr& instr : program.instrs) list.push_back(Nanos(std::get<instr::Fill>(instr.op).n));
  return list;
}

struct Setting {
  explicit Setting(Program p) : program(std::move(p)) {}
  Program program;
  std::vector<BufferUses> uses = uses_of_buffers(program, kAll);
  Timeline timeline = timeline_of(program, durations(program));
  PlanEvaluator evaluator{program, uses, durations(program), transfer, Bytes(64)};

  std::optional<CompressedProgram> compress() const {
    return compress_period(program, uses, durations(program), timeline, Nanos(20'000));
  }
  PlanEvaluator::Outcome outcome(const OffloadPlan& plan, Bytes budget) const {
    Bytes state{};
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].state &&
          !std::ranges::binary_search(plan.offloaded_state, static_cast<std::int32_t>(b)))
        state += program.buffers[b].bytes;
    return evaluator.evaluate(plan, state, budget);
  }
  OffloadPlan plan(OffloadPlan (*policy)(const OffloadProblem&), Bytes target) const {
    return policy({program, uses, timeline, transfer, target, {}, true});
  }
  Bytes peak() const { return outcome({}, Bytes(1LL << 40)).peak; }
};

TEST(CompressPeriod, GivesTheStepOfFewerMicroBatches) {
  for (const int behind : {0, 1, 3}) {
    const Setting whole(Stage(4, behind, 60).take());
    const auto compressed = whole.compress();
    ASSERT_TRUE(compressed) << behind;
    EXPECT_EQ(compressed->period, 12);
    const Program few = Stage(4, behind, 60 - compressed->omitted).take();
    ASSERT_EQ(compressed->program.instrs.size(), few.instrs.size());
    EXPECT_EQ(compressed->program.buffers.size(), few.buffers.size());
    EXPECT_EQ(compressed->durations, durations(few));
    // Buffers have other numbers; the mapping must be consistent.
    std::vector<std::int64_t> number(few.buffers.size(), -1);
    for (std::size_t i = 0; i < few.instrs.size(); ++i) {
      std::vector<std::int64_t> expected, got;
      each_use(few.instrs[i], [&](const Operand& o, bool, bool) { expected.push_back(o.buffer.value); });
      each_use(compressed->program.instrs[i],
               [&](const Operand& o, bool, bool) { got.push_back(o.buffer.value); });
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t u = 0; u < got.size(); ++u) {
        std::int64_t& known = number[static_cast<std::size_t>(expected[u])];
        if (known < 0) known = got[u];
        EXPECT_EQ(known, got[u]) << i;
      }
    }
    EXPECT_EQ(compressed->length_of_whole(timeline_of(compressed->program, compressed->durations)),
              whole.timeline.length);
  }
}

TEST(CompressPeriod, OmitsNothingIfTheMiddleDiffers) {
  EXPECT_FALSE(Setting(Stage(4, 1, 60, 30).take()).compress());
  EXPECT_FALSE(Setting(Stage(4, 1, 3).take()).compress());
}

// ns of the fastest plans that fit: made for the whole Program, expanded, and as predicted by the compressed
// one.
struct Best {
  std::int64_t direct = kNever, expanded = kNever, promised = kNever;
  static constexpr std::int64_t kNever = std::int64_t{1} << 60;
};

Program applied(const Setting& whole, const OffloadPlan& plan) {
  Program p = whole.program;
  apply(p, whole.uses, plan, Tier::kPool);
  StatePlaces places;
  place_state({&p, 1}, places);
  place_buffers(p, places);
  add_events(p);
  return p;
}

void keep_shorter(std::int64_t& best, std::int64_t promise, const PlanEvaluator::Outcome& outcome,
                  Bytes budget) {
  if (outcome.peak <= budget) best = std::min(best, promise);
}

Best best_of(const Setting& whole, const CompressedProgram& compressed, Bytes budget) {
  const Setting few(compressed.program);
  Best best;
  for (const auto policy :
       {gap_policy, hidden_state_policy, rematerialize_policy, belady_policy, lru_policy}) {
    const Bytes target = budget * 15 / 16;
    const OffloadPlan plan = few.plan(policy, target);
    const PlanEvaluator::Outcome direct = whole.outcome(whole.plan(policy, target), budget),
                                 shorter = few.outcome(plan, budget);
    keep_shorter(best.direct, direct.timeline.length, direct, budget);
    keep_shorter(best.promised, compressed.length_of_whole(shorter.timeline), shorter, budget);
    for (const std::int32_t splice : compressed.splice_points()) {
      const auto expanded = expand_period(compressed, plan, few.uses, whole.program, whole.uses, splice);
      if (!expanded) continue;
      verify(applied(whole, *expanded));
      const PlanEvaluator::Outcome outcome = whole.outcome(*expanded, budget);
      keep_shorter(best.expanded, outcome.timeline.length, outcome, budget);
    }
  }
  return best;
}

TEST(CompressPeriod, ExpandsToAPlanThatVerifiesFitsAndIsAsFastAsOneForTheWhole) {
  int compared = 0;
  for (const int behind : {0, 1, 3})
    for (const double share : {0.95, 0.9, 0.8, 0.7}) {
      const Setting whole(Stage(4, behind, 60).take());
      const auto compressed = whole.compress();
      ASSERT_TRUE(compressed);
      const Bytes budget(static_cast<std::int64_t>(share * static_cast<double>(whole.peak().value)));
      const Best best = best_of(whole, *compressed, budget);
      if (best.direct == Best::kNever) continue;
      ++compared;
      EXPECT_LE(best.expanded, best.direct + best.direct / 50) << behind << " " << share;
      EXPECT_LE(best.expanded, best.promised + best.promised / 50) << behind << " " << share;
    }
  EXPECT_GE(compared, 8);
}

}  // namespace
}  // namespace hyperrun

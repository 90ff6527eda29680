// Declared layouts: patterns, overrides and refusals.
#include "runtime/shard/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/differentiate.h"
#include "runtime/model/graph/model.h"
#include "runtime/shard/propagate.h"
#include "runtime/spec/layout_notation.h"
#include "tests/shard/tiny_job.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;

TEST(Glob, StarStandsForAnyCharactersAlsoNone) {
  EXPECT_TRUE(matches("layers.*.attention.wq", "layers.0.attention.wq"));
  EXPECT_TRUE(matches("layers.*.attention.wq", "layers.12.attention.wq"));
  EXPECT_FALSE(matches("layers.*.attention.wq", "layers.0.attention.wq.grad"));
  EXPECT_FALSE(matches("layers.*.attention.wq", "xlayers.0.attention.wq"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*.residual", "layers.0.ffn.residual"));
  EXPECT_TRUE(matches("a*b*c", "abc"));
  EXPECT_TRUE(matches("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(matches("a*b*c", "acb"));
  EXPECT_TRUE(matches("*.adam_*", "layers.0.ffn.up.adam_v"));
  EXPECT_TRUE(matches("embed", "embed"));
  EXPECT_FALSE(matches("embed", "embed.out"));
  EXPECT_FALSE(matches("", "embed"));
  EXPECT_TRUE(matches("", ""));
}

class Rules : public ::testing::Test {
 protected:
  Rules() {
    ModelSpec model{.layers = 2,
                    .hidden = 12,
                    .heads = 4,
                    .kv_heads = 2,
                    .head_dim = 4,
                    .ffn = 18,
                    .vocab = 40,
                    .sequence = 8};
    graph_ = build_model(model, {.batch = 4});
    const auto gradients = differentiate(graph_);
    add_optimizer(graph_, gradients, TrainingSpec{});
    mesh_.axes = {{"dp", 2}, {"tp", 2}};
  }

  const Dim& vocab(const Graph& graph) const { return graph[graph[graph.find("logits")].dims.back()]; }

  static ShardRule rule(std::string tensor, std::string dim, std::vector<std::string> axes) {
    return {std::move(tensor), {{std::move(dim), std::move(axes)}}, "job.textproto:12:3"};
  }

  static ShardRule positional(std::string tensor, const char* layout) {
    return {std::move(tensor), {}, "job.textproto:12:3", false, parse_layout(layout)};
  }

  Layout layout_of(const std::string& tensor) const {
    const auto layouts = declare_layouts(graph_, mesh_, parallel_);
    const TensorId t = graph_.find(tensor);
    EXPECT_TRUE(t.valid()) << tensor;
    EXPECT_TRUE(layouts[t.index()].layout.has_value()) << tensor;
    return layouts[t.index()].layout.value_or(Layout{});
  }

  bool declared(const std::string& tensor) const {
    return declare_layouts(graph_, mesh_, parallel_)[graph_.find(tensor).index()].layout.has_value();
  }

  // The error that these rules cause; fails if there is none.
  Error refused() const {
    try {
      shard(graph_, mesh_, parallel_);
    } catch (const Error& e) {
      return e;
    }
    ADD_FAILURE() << "nothing was refused";
    return Error(Code::kInternal, "");
  }

  Graph graph_;
  Mesh mesh_;
  ParallelSpec parallel_;
};

const AxisList kNone{}, kDp{0}, kTp{1};

TEST_F(Rules, WithoutRulesStateIsReplicatedAndTheRestIsLeftToPropagation) {
  EXPECT_EQ(layout_of("layers.0.ffn.up"), Layout::replicated(2));
  EXPECT_EQ(layout_of("rope"), Layout::replicated(2));
  EXPECT_FALSE(declared("layers.0.ffn.residual"));
  EXPECT_FALSE(declared("ids"));
}

TEST_F(Rules, GradientsMomentsAndUpdatesFollowTheirWeight) {
  parallel_.rules = {rule("layers.*.ffn.up", "ffn", {"tp"})};
  for (const char* name : {"layers.1.ffn.up", "layers.1.ffn.up.grad", "layers.1.ffn.up.adam_m",
                           "layers.1.ffn.up.adam_v", "layers.1.ffn.up.next", "layers.1.ffn.up.adam_m.next"})
    EXPECT_EQ(layout_of(name).dims, (std::vector<AxisList>{kTp, kNone})) << name;
  EXPECT_EQ(layout_of("layers.1.ffn.gate"), Layout::replicated(2));
}

TEST_F(Rules, TheUsersRulesOverridePresetsDimensionByDimension) {
  parallel_.presets = {"tp"};
  EXPECT_EQ(layout_of("embed").dims, (std::vector<AxisList>{kTp, kNone}));
  parallel_.rules = {rule("embed", "vocab", {}), rule("embed", "hidden", {"tp"})};
  EXPECT_EQ(layout_of("embed").dims, (std::vector<AxisList>{kNone, kTp}));
  EXPECT_EQ(layout_of("head").dims, (std::vector<AxisList>{kTp, kNone})) << "not named, not changed";
  parallel_.rules.push_back(rule("embed", "hidden", {}));
  EXPECT_EQ(layout_of("embed"), Layout::replicated(2)) << "the last rule wins";
}

TEST_F(Rules, SeveralAxesSplitADimensionMajorFirst) {
  parallel_.rules = {rule("embed", "vocab", {"tp", "dp"})};
  EXPECT_EQ(layout_of("embed").dims, (std::vector<AxisList>{{1, 0}, kNone}));
}

TEST_F(Rules, Zero1SplitsTheFirstDimensionThatDividesOfMomentsOnly) {
  parallel_.presets = {"tp", "zero1"};
  EXPECT_EQ(layout_of("layers.0.ffn.up").dims, (std::vector<AxisList>{kTp, kNone}));
  // tp splits ffn = 18 into 9, which dp does not divide, so the next dimension is taken.
  EXPECT_EQ(layout_of("layers.0.ffn.up.adam_m").dims, (std::vector<AxisList>{kTp, kDp}));
  EXPECT_EQ(layout_of("embed.adam_v").dims, (std::vector<AxisList>{{1, 0}, kNone}));
  EXPECT_EQ(layout_of("final_norm.adam_m").dims, (std::vector<AxisList>{kDp}));
}

// The embedding is split by 3, the head by 2 x 3: 42 is the least multiple of both that is not below 40.
TEST_F(Rules, AVocabularyIsPaddedForAllThatSplitsIt) {
  mesh_.axes = {{"dp", 2}, {"tp", 3}};
  parallel_.rules = {rule("embed", "vocab", {"tp"}), rule("head", "vocab", {"tp", "dp"})};
  const Graph padded = shard(graph_, mesh_, parallel_);
  EXPECT_EQ(vocab(padded).size, 42);
  EXPECT_EQ(vocab(padded).padding, 2);
  EXPECT_EQ(padded[padded.find("embed")].saved.shape, (std::vector<std::int64_t>{40, 12}));
  parallel_.rules = {rule("embed", "vocab", {"dp"})};
  EXPECT_EQ(vocab(shard(graph_, mesh_, parallel_)).padding, 0);
}

// hidden = 12 and vocab = 40 are not divisible by all axes together, so each axis splits a dimension of its
// own.
TEST_F(Rules, ZeroSplitsSeveralDimensionsWhereNoneDividesOverAllItsAxes) {
  mesh_.axes = {{"dp", 2}, {"ep", 2}, {"cp", 2}, {"ring", 2}};
  parallel_.presets = {"zero1"};
  EXPECT_EQ(layout_of("embed.adam_m").dims, (std::vector<AxisList>{{2, 3, 1}, {0}}));
  EXPECT_EQ(layout_of("final_norm.adam_m").dims, (std::vector<AxisList>{{2, 3}})) << "whole over the others";
  EXPECT_EQ(layout_of("embed"), Layout::replicated(2));
}

// A mixture of experts on 16 devices, whose dimensions are divisible by all of ZeRO's axes together.
class RulesOfZero : public Rules {
 protected:
  RulesOfZero() {
    const ModelSpec model{.layers = 1,
                          .hidden = 16,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 4,
                          .ffn = 32,
                          .vocab = 48,
                          .sequence = 8,
                          .experts = {.count = 4, .choices = 2, .ffn = 24}};
    graph_ = build_model(model, {.batch = 4});
    const auto gradients = differentiate(graph_);
    add_optimizer(graph_, gradients, TrainingSpec{});
    mesh_.axes = {{"dp", 2}, {"ep", 2}, {"cp", 2}, {"ring", 2}};
  }

  // The number of devices that hold each element.
  std::int64_t copies_of(const std::string& tensor) const {
    return mesh_.devices() / mesh_.size(layout_of(tensor).split_axes());
  }
};

TEST_F(RulesOfZero, LiesInOneDimensionOverEveryAxisThatSplitsTokens) {
  parallel_.presets = {"dp", "ep", "cp", "ring", "zero1"};
  for (const char* moments : {"embed.adam_m", "final_norm.adam_v"})
    EXPECT_EQ(layout_of(moments).dims.front(), (AxisList{2, 3, 1, 0})) << moments;
  EXPECT_EQ(copies_of("layers.0.attention.wo.adam_m"), 1);
  EXPECT_EQ(copies_of("layers.0.attention.wo"), 16);
  EXPECT_EQ(copies_of("layers.0.attention.wo.grad"), 16);
}

// Experts are split over "ep" already. ZeRO takes the other axes, here in the first dimension that 8 divides.
TEST_F(RulesOfZero, LeavesExpertsOverTheirAxis) {
  parallel_.presets = {"ep", "zero1"};
  const Layout used = layout_of("layers.0.experts.up");
  EXPECT_EQ(used.dims.front(), (AxisList{1}));
  EXPECT_EQ(copies_of("layers.0.experts.up"), 8);
  const Layout moments = layout_of("layers.0.experts.up.adam_m");
  EXPECT_EQ(moments.dims, (std::vector<AxisList>{{1}, {2, 3, 0}, {}}));
  EXPECT_EQ(copies_of("layers.0.experts.up.adam_m"), 1);
}

TEST_F(RulesOfZero, SplitsTheStateThatItsNumberNames) {
  for (const auto& [zero, gradients, weights] :
       {std::tuple{"zero1", 16, 16}, {"zero2", 1, 16}, {"zero3", 1, 1}}) {
    parallel_.presets = {zero};
    EXPECT_EQ(copies_of("head.adam_m"), 1) << zero;
    EXPECT_EQ(copies_of("head.grad"), gradients) << zero;
    EXPECT_EQ(copies_of("head"), weights) << zero;
  }
}

TEST_F(RulesOfZero, TakesTheAxesThatTheMeshHas) {
  parallel_.presets = {"zero1"};
  for (const char* axis : {"dp", "ep", "cp", "ring"}) {
    mesh_.axes = {{"tp", 2}, {axis, 2}};
    EXPECT_EQ(layout_of("embed.adam_m").dims, (std::vector<AxisList>{{1}, {}})) << axis;
  }
  mesh_.axes = {{"replicas", 2}, {"cp", 4}};
  EXPECT_EQ(copies_of("embed.adam_m"), 2) << "\"replicas\" stay whole";
}

TEST_F(Rules, AnAxisOfSizeOneSplitsNothing) {
  mesh_.axes = {{"dp", 4}, {"tp", 1}};
  parallel_.presets = {"tp"};
  EXPECT_EQ(layout_of("embed"), Layout::replicated(2));
}

TEST_F(Rules, UnknownAxis) {
  parallel_.rules = {rule("embed", "vocab", {"ep"})};
  const Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_EQ(e.place(), "job.textproto:12:3");
  EXPECT_THAT(e.cause(), HasSubstr("no axis \"ep\""));
  EXPECT_EQ(e.legal(), "dp, tp");
}

TEST_F(Rules, PresetWhoseAxisTheMeshLacks) {
  mesh_.axes = {{"tp", 2}};
  parallel_.presets = {"dp"};
  const Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_EQ(e.place(), "preset dp");
  EXPECT_EQ(e.legal(), "tp");
}

TEST_F(Rules, ZeroOnAMeshWithoutAnyOfItsAxes) {
  mesh_.axes = {{"tp", 2}, {"replicas", 2}};
  for (const char* zero : {"zero1", "zero2", "zero3"}) {
    parallel_.presets = {zero};
    const Error e = refused();
    EXPECT_EQ(e.code(), Code::kBadLayout);
    EXPECT_EQ(e.place(), std::string("preset ") + zero);
    EXPECT_EQ(e.legal(), "tp, replicas");
  }
}

TEST_F(Rules, UnknownPreset) {
  parallel_.presets = {"pp"};
  const Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_EQ(e.legal(), "dp, replicas, ep, etp, ep_tp, tp, sp, tp2d, cp, ring, zero1, zero2, zero3");
}

TEST_F(Rules, UnknownDimension) {
  parallel_.rules = {rule("embed", "heads", {"tp"})};
  const Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_THAT(e.cause(), HasSubstr("embed has no dimension \"heads\""));
  EXPECT_EQ(e.legal(), "vocab, hidden");
}

TEST_F(Rules, ADimensionThatNoTensorHas) {
  parallel_.rules = {rule("layers.*.attention.wq", "kv_head", {"tp"})};
  const Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_EQ(e.place(), "job.textproto:12:3");
  EXPECT_THAT(e.cause(), HasSubstr("layers.*.attention.wq has no dimension \"kv_head\""));
  EXPECT_EQ(e.legal(), "kv_heads, group, head_dim, hidden");
  parallel_.rules = {rule("layers.*.ffn.*", "ffn", {"tp"})};  // only some have the dimension
  EXPECT_NO_THROW(layout_of("embed"));
}

// All dims of a rule hold together, whichever is written first.
TEST_F(Rules, AxesChangePlacesInOneRule) {
  parallel_.presets = {"tp"};
  for (const bool first : {false, true}) {
    ShardRule swapped = rule("embed", "hidden", {"tp"});
    swapped.dims.insert(first ? swapped.dims.begin() : swapped.dims.end(), {"vocab", {}});
    parallel_.rules = {swapped};
    EXPECT_EQ(layout_of("embed").dims, (std::vector<AxisList>{kNone, kTp}));
  }
}

TEST_F(Rules, NotDividingListsTheDivisors) {
  mesh_.axes = {{"dp", 1}, {"tp", 4}};
  parallel_.rules = {rule("layers.*.ffn.up", "ffn", {"tp"})};
  const Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_THAT(e.cause(), HasSubstr("tp of size 4 does not divide ffn = 18 of layers.0.ffn.up"));
  EXPECT_EQ(e.legal(), "1, 2, 3, 6, 9, 18");
  EXPECT_THAT(e.remedy(), HasSubstr("multiple of 4"));
}

// A preset may not divide what the job's own rules then leave whole, or split over an axis that does.
TEST_F(Rules, OnlyTheLastRuleMustDivide) {
  mesh_.axes = {{"dp", 1}, {"tp", 4}};
  parallel_.rules = {rule("layers.*.ffn.up", "ffn", {"tp"})};
  EXPECT_THAT(refused().cause(), HasSubstr("does not divide ffn = 18"));
  parallel_.rules.push_back(rule("layers.*.ffn.up", "ffn", {}));
  EXPECT_EQ(layout_of("layers.0.ffn.up"), Layout::replicated(2));
  EXPECT_EQ(layout_of("layers.0.ffn.up.adam_m"), Layout::replicated(2));
  parallel_.rules.push_back(rule("layers.1.ffn.up", "ffn", {"tp"}));
  EXPECT_THAT(refused().cause(), HasSubstr("does not divide ffn = 18 of layers.1.ffn.up"));
}

TEST_F(Rules, LegalSizesDivideEverythingThatTheAxisSplits) {
  mesh_.axes = {{"dp", 1}, {"tp", 3}};  // 3 divides hidden and ffn, but not the two heads of keys
  parallel_.presets = {"tp"};
  const Error e = refused();
  EXPECT_THAT(e.cause(), HasSubstr("tp of size 3 does not divide kv_heads = 2"));
  EXPECT_EQ(e.legal(), "1, 2");
  mesh_.axes = {{"dp", 1}, {"tp", 2}};
  EXPECT_NO_THROW(layout_of("embed"));
}

TEST_F(Rules, AxisTwiceInOneTensor) {
  parallel_.rules = {rule("embed", "vocab", {"tp"}), rule("embed", "hidden", {"tp"})};
  Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_THAT(e.cause(), HasSubstr("axis \"tp\" splits embed twice"));
  parallel_.rules = {rule("embed", "vocab", {"tp", "tp"})};
  e = refused();
  EXPECT_THAT(e.cause(), HasSubstr("axis \"tp\" splits embed twice"));
}

TEST_F(Rules, AWholeLayoutReplacesWhatEarlierRulesSaid) {
  parallel_.presets = {"tp"};
  parallel_.rules = {positional("embed", "('None', 'tp')")};
  EXPECT_EQ(layout_of("embed").dims, (std::vector<AxisList>{kNone, kTp}));
  parallel_.rules.push_back(positional("embed", "(('tp', 'dp'), None)"));
  EXPECT_EQ(layout_of("embed").dims, (std::vector<AxisList>{{1, 0}, kNone}));
  EXPECT_EQ(layout_of("embed.grad").dims, layout_of("embed").dims) << "as any other rule";
  parallel_.rules.push_back(rule("embed", "vocab", {"tp"}));
  EXPECT_EQ(layout_of("embed").dims, (std::vector<AxisList>{kTp, kNone})) << "and later rules it";
  parallel_.rules.push_back(positional("embed", "(None, None)"));
  EXPECT_EQ(layout_of("embed"), Layout::replicated(2));
}

TEST_F(Rules, AWholeLayoutIsCheckedAsAWhole) {
  mesh_.axes = {{"dp", 2}, {"tp", 4}};
  parallel_.rules = {rule("layers.*.ffn.up", "hidden", {"tp"}),
                     positional("layers.*.ffn.up", "('dp', 'tp')")};
  EXPECT_EQ(layout_of("layers.1.ffn.up").dims, (std::vector<AxisList>{kDp, kTp}));
  parallel_.rules = {positional("layers.*.ffn.up", "('tp', 'dp')")};
  const Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_THAT(e.cause(), HasSubstr("tp of size 4 does not divide ffn = 18"));
}

TEST_F(Rules, AWholeLayoutHasAnEntryForEachDimension) {
  for (const char* layout : {"('tp')", "('tp', None, None)", "()"}) {
    parallel_.rules = {positional("embed", layout)};
    const Error e = refused();
    EXPECT_EQ(e.code(), Code::kBadLayout);
    EXPECT_EQ(e.place(), "job.textproto:12:3");
    EXPECT_THAT(e.cause(), HasSubstr("embed has 2 dimensions"));
    EXPECT_EQ(e.legal(), "an entry for each of: vocab, hidden");
    EXPECT_THAT(e.remedy(), HasSubstr("\"None\""));
  }
}

TEST(Notations, AJobInBothIsTheSamePlan) {
  Job by_name = tiny_job({"both", 2, 2, {"dp", "tp"}});
  by_name.run.generate.tokens = 1;
  Job by_position = by_name;
  by_name.parallel.rules = {{"embed", {{"vocab", {}}, {"hidden", {"tp"}}}},
                            {"layers.*.attention.wk", {{"kv_heads", {"tp", "dp"}}}},
                            {"logits", {{"seq", {"tp"}}}}};
  for (const auto& [tensor, layout] :
       {std::pair{"embed", "(None, 'tp')"},
        {"layers.*.attention.wk", "Layout((2, 2), ('dp', 'tp'))(('tp', 'dp'), 'None', 'None')"},
        {"logits", "(None, 'tp', None)"}})  // in a generation they have one dimension less
    by_position.parallel.rules.push_back({tensor, {}, "", false, parse_layout(layout)});
  const Plan plan = compile(by_name).plan;
  EXPECT_EQ(compile(by_position).plan.roles[0].program("train"), plan.roles[0].program("train"));
  by_position.parallel.rules.pop_back();
  EXPECT_NE(compile(by_position).plan.roles[0].program("train"), plan.roles[0].program("train"))
      << "or nothing is compared";
}

TEST_F(Rules, RuleThatNamesNothing) {
  parallel_.rules = {rule("layers.*.attention.wx", "hidden", {"tp"})};
  const Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_EQ(e.place(), "job.textproto:12:3");
  EXPECT_THAT(e.cause(), HasSubstr("\"layers.*.attention.wx\" names no tensor"));
}

// A batch that dp does not divide is the user's error, whichever rule declares it.
TEST_F(Rules, BatchThatDoesNotDivide) {
  mesh_.axes = {{"dp", 8}};
  parallel_.presets = {"dp"};
  const Error e = refused();
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_THAT(e.cause(), HasSubstr("does not divide batch = 4 of ids"));
  EXPECT_EQ(e.legal(), "1, 2, 4");
}

}  // namespace
}  // namespace hyperrun::testing

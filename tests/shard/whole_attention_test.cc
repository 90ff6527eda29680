// Attention without a mask, forward and backward, in each kind of layout, compared with the definition in
// double.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "collectives/group.h"
#include "runtime/compile/events.h"
#include "runtime/compile/lower.h"
#include "runtime/compile/place.h"
#include "runtime/device/executor.h"
#include "runtime/device/output_arrays.h"
#include "runtime/ir/describe_instr.h"
#include "runtime/shard/propagate.h"
#include "runtime/spec/plan_io.h"
#include "tests/support/interpreter.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

struct Setting {
  std::string name;
  std::vector<MeshAxis> axes;
  std::vector<ShardRule> rules;
  std::int64_t seq = 21;
  bool masked_too = false;             // a causal attention over the same sequence
  std::map<std::string, int> kinds{};  // numbers of some instructions by name
};
std::ostream& operator<<(std::ostream& out, const Setting& s) { return out << s.name; }

// Inputs are state, so that each device has its part from the start.
class Attentions {
 public:
  Attentions(std::int64_t seq, bool masked_too) : seq_(graph.add_dim("seq", seq)) {
    add("whole", false, seq_);
    if (masked_too) add("masked", true, seq_);
    verify(graph);
  }

  void add(const std::string& at, bool causal, DimId seq) {
    const std::vector<DimId> of_q{batch_, seq, kv_heads_, group_, head_dim_},
        of_k{batch_, seq, kv_heads_, head_dim_}, of_v{batch_, seq, kv_heads_, value_dim_},
        of_o{batch_, seq, kv_heads_, group_, value_dim_}, of_lse{batch_, kv_heads_, group_, seq};
    const auto input = [&](const std::string& name, const std::vector<DimId>& dims) {
      inputs.push_back(graph.add_tensor(Tensor{at + "." + name, DType::kF32, dims, TensorClass::kConstant}));
      return inputs.back();
    };
    const auto named = [&](const std::string& name, const std::vector<DimId>& dims) {
      return Tensor{at + "." + name, DType::kF32, dims};
    };
    const TensorId q = input("q", of_q), k = input("k", of_k), v = input("v", of_v), d_o = input("d_o", of_o);
    const auto found = graph.add_node({at, op::Attention{causal}, {q, k, v}, {}, {}, Phase::kForward},
                                      {named("o", of_o), named("lse", of_lse)});
    const auto gradients = graph.add_node({at + ".grad",
                                           op::AttentionGrad{causal},
                                           {q, k, v, found[0], found[1], d_o},
                                           {},
                                           {},
                                           Phase::kForward},
                                          {named("dq", of_q), named("dk", of_k), named("dv", of_v)});
    for (const TensorId t : {found[0], gradients[0], gradients[1], gradients[2]})
      graph.outputs.emplace_back(graph[t].name, t);
  }

  Graph graph;
  std::vector<TensorId> inputs;

 private:
  DimId batch_ = graph.add_dim("batch", 2), kv_heads_ = graph.add_dim("kv_heads", 4),
        group_ = graph.add_dim("group", 2), head_dim_ = graph.add_dim("head_dim", 6),
        value_dim_ = graph.add_dim("value_dim", 5), seq_;
};

Values random_values(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Values values(static_cast<std::size_t>(n));
  for (double& x : values) x = static_cast<float>(normal(random));
  return values;
}

// The part of a state tensor that a device holds.
std::vector<float> part(const Graph& graph, TensorId t, const Values& whole, const Mesh& mesh,
                        std::int64_t device) {
  const Layout& layout = graph.layouts[t.index()];
  const std::vector<std::int64_t> shape = graph.shape(t), local = local_shape(shape, layout, mesh);
  const std::int64_t n = std::accumulate(local.begin(), local.end(), std::int64_t{1}, std::multiplies<>());
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t global = 0, rest = i, stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const std::int64_t place = rest % local[d] + local[d] * mesh.index(device, layout.dims[d]);
      global += stride * Zigzag::of(shape[d], graph[graph[t].dims[d]].ring).position(place);
      rest /= local[d];
      stride *= shape[d];
    }
    values.push_back(static_cast<float>(whole[static_cast<std::size_t>(global)]));
  }
  return values;
}

class WholeAttention : public ::testing::TestWithParam<Setting> {
 protected:
  Plan plan() {
    Program program =
        lower(sharded_, mesh_, {"attention", {Slot{}}, [](const Node&) { return true; }, {}}).program;
    StatePlaces places;
    place_state({&program, 1}, places);
    place_buffers(program, places);
    add_events(program);
    verify(program);
    return plan_from_bytes(to_bytes(Plan{mesh_, {}, {Role{{std::move(program)}, {}}}}), "test");
  }

  // Parts of the outputs by device.
  std::vector<std::vector<OutputPart>> run(const Plan& plan, const std::map<std::string, Values>& inputs) {
    const auto devices = static_cast<int>(mesh_.devices());
    std::vector<Arena> arenas = make_in_process_arenas(devices, plan.peak());
    auto worlds = make_in_process_worlds(arenas, Topology::uniform(1, devices));
    const Feed feed;
    std::vector<std::vector<OutputPart>> outputs(arenas.size());
    std::vector<std::thread> threads;
    for (int d = 0; d < devices; ++d)
      threads.emplace_back([&, d] {
        const auto n = static_cast<std::size_t>(d);
        for (const Buffer& b : plan.roles[0].programs[0].buffers) {
          if (!b.state) continue;
          const std::vector<float> values =
              part(sharded_, sharded_.find(b.name), inputs.at(b.name), mesh_, d);
          std::memcpy(arenas[n].view(b.offset, b.bytes).data(), values.data(), values.size() * sizeof(float));
        }
        outputs[n] = Executor(plan, arenas[n], *worlds[n], feed, {}).run(0, {}).arrays;
      });
    for (std::thread& t : threads) t.join();
    for (auto& of_device : outputs) std::erase_if(of_device, [](const OutputPart& p) { return !p.reported; });
    return outputs;
  }

  const Setting& setting_ = GetParam();
  const Mesh mesh_{setting_.axes};
  Attentions all_{setting_.seq, setting_.masked_too};
  Graph sharded_ =
      shard(all_.graph, mesh_, ParallelSpec{.mesh = setting_.axes, .presets = {}, .rules = setting_.rules});
};

TEST_P(WholeAttention, EqualsOneDevice) {
  Interpreter reference(all_.graph);
  std::map<std::string, Values> inputs;
  for (const TensorId t : all_.inputs)
    inputs[all_.graph[t].name] = reference[t] =
        random_values(all_.graph.elements(t), static_cast<unsigned>(t.index()));
  reference.run(Phase::kForward);

  const Plan p = plan();
  const auto parts = run(p, inputs);
  for (const auto& [label, t] : all_.graph.outputs)
    EXPECT_LT(relative(reference[t], whole_output_as<float>(p, 0, label, parts)), 1e-6) << label;
}

// Devices share the work equally, and each layout has its known communication.
TEST_P(WholeAttention, IsSharedEqually) {
  const Plan p = plan();
  std::map<std::string, int> kinds;
  std::int64_t flops = 0;
  for (const Instr& i : p.roles[0].programs[0].instrs) {
    const auto* c = std::get_if<instr::Collective>(&i.op);
    ++kinds[std::string(c == nullptr ? name(i.op) : name(c->kind))];
    if (name(i.op).starts_with("Attention")) flops += work(i, mesh_).flops.value;
  }
  for (const auto& [kind, count] : setting_.kinds) EXPECT_EQ(kinds[kind], count) << kind;
  const std::int64_t scores = 2 * 8 * setting_.seq * setting_.seq;  // of all heads and sequences
  const std::int64_t forward = 2 * scores * (6 + 5), backward = 2 * scores * (3 * 6 + 2 * 5);
  const std::int64_t shared = setting_.masked_too && setting_.name == "BesideARing" ? 1 : mesh_.devices();
  const std::int64_t masked = setting_.masked_too ? (forward + backward) / 2 / mesh_.devices() : 0;
  EXPECT_EQ(flops, (forward + backward) / shared + masked);
}

ShardRule rule(const char* tensor, const char* dim, const std::vector<std::string>& axes) {
  return {tensor, {{dim, axes}}, "test"};
}
std::vector<ShardRule> inputs(const char* dim, const std::vector<std::string>& axes) {
  return {rule("*.q", dim, axes), rule("*.k", dim, axes), rule("*.v", dim, axes), rule("*.d_o", dim, axes)};
}
std::vector<ShardRule> operator+(std::vector<ShardRule> a, const std::vector<ShardRule>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// 21 positions in a ring of three are parts of seven, an odd number: without a mask parts are not halved.
INSTANTIATE_TEST_SUITE_P(
    Layouts, WholeAttention,
    ::testing::Values(Setting{.name = "One", .axes = {{"a", 1}}, .rules = {}},
                      Setting{.name = "Batch", .axes = {{"dp", 2}}, .rules = inputs("batch", {"dp"})},
                      Setting{.name = "Heads", .axes = {{"tp", 4}}, .rules = inputs("kv_heads", {"tp"})},
                      Setting{.name = "Ulysses",
                              .axes = {{"cp", 4}},
                              .rules = inputs("seq", {"cp"}),
                              .seq = 20,
                              .kinds = {{"all-to-all", 4}, {"AttentionStep", 0}}},
                      Setting{.name = "UlyssesAndHeads",
                              .axes = {{"cp", 2}, {"tp", 2}},
                              .rules = inputs("seq", {"cp"}) + inputs("kv_heads", {"tp"}),
                              .seq = 22},
                      Setting{.name = "Ring",
                              .axes = {{"ring", 3}},
                              .rules = inputs("seq", {"ring"}) + std::vector{rule("*.o", "seq", {"ring"})},
                              .kinds = {{"AttentionStep", 2}, {"AttentionStepGrad", 2}, {"all-to-all", 0}}},
                      Setting{.name = "RingOfOnePositionEach",
                              .axes = {{"ring", 4}},
                              .rules = inputs("seq", {"ring"}) + std::vector{rule("*.o", "seq", {"ring"})},
                              .seq = 4},
                      Setting{.name = "BatchAndRing",
                              .axes = {{"dp", 2}, {"ring", 3}},
                              .rules = inputs("seq", {"ring"}) + inputs("batch", {"dp"}) +
                                       std::vector{rule("*.o", "seq", {"ring"})}},
                      Setting{
                          .name = "RingAndUlysses",
                          .axes = {{"ring", 2}, {"cp", 2}},
                          .rules = inputs("seq", {"ring", "cp"}) + std::vector{rule("*.o", "seq", {"ring"})},
                          .seq = 20},
                      Setting{.name = "InTheOrderOfARing",
                              .axes = {{"ring", 2}},
                              .rules = inputs("seq", {"ring"}) + std::vector{rule("*.o", "seq", {"ring"})},
                              .seq = 20,
                              .masked_too = true},
                      Setting{.name = "BesideARing",
                              .axes = {{"ring", 2}},
                              .rules = {rule("masked.o", "seq", {"ring"})},
                              .seq = 20,
                              .masked_too = true}),
    [](const auto& info) { return info.param.name; });

// Causal attention needs the ring order of its own sequence. Attention without a mask needs none.
TEST(Rings, MayDifferBetweenSequences) {
  Attentions all(24, false);
  const DimId text = all.graph.add_dim("text", 16), notes = all.graph.add_dim("notes", 16);
  all.add("text", true, text);
  all.add("notes", true, notes);
  const std::vector<MeshAxis> axes{{"a", 2}, {"b", 2}};
  const Graph sharded =
      shard(all.graph, Mesh{axes},
            ParallelSpec{.mesh = axes,
                         .presets = {},
                         .rules = {rule("whole.o", "seq", {"b"}), rule("text.o", "text", {"a"}),
                                   rule("notes.o", "notes", {"a", "b"})}});
  for (const Dim& dim : sharded.dims)
    EXPECT_EQ(dim.ring, dim.name == "text" ? 2 : dim.name == "notes" ? 4 : 1) << dim.name;
}

TEST(AttentionText, SaysWhatHasNoMask) {
  const Mesh mesh{{{"a", 1}}};
  EXPECT_EQ(describe(instr::Attention{.batch = 2}, mesh), "Attention batch=2");
  EXPECT_EQ(describe(instr::Attention{.batch = 2, .causal = false}, mesh), "Attention batch=2 causal=no");
}

}  // namespace
}  // namespace hyperrun::testing

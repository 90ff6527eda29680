#include "runtime/compose/submodel.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/differentiate.h"
#include "runtime/compile/passes.h"
#include "runtime/compile/precision.h"
#include "runtime/compile/recompute.h"
#include "runtime/model/graph/model.h"
#include "runtime/shard/propagate.h"
#include "runtime/shard/rules.h"

namespace hyperrun {
namespace {

constexpr const char* kGradSquares = "grad_squares";

bool is_encoder(const SubmodelSpec& spec) { return spec.job.model.name == "encoder"; }
int end_layer(const SubmodelSpec& spec) {
  return spec.end_layer < 0 ? spec.job.model.layers : spec.end_layer;
}
bool begins(const SubmodelSpec& spec) { return spec.first_layer == 0; }
bool ends(const SubmodelSpec& spec) { return end_layer(spec) == spec.job.model.layers; }
bool clips(const SubmodelSpec& spec) { return spec.job.training.clip_norm > 0; }
bool is_whole(const SubmodelSpec& spec) { return begins(spec) && ends(spec); }

// --- checks -----------------------------------------------------------------------------------------

void refuse(bool holds, const std::string& cause, const std::string& field, const std::string& legal,
            const std::string& remedy) {
  if (holds) throw Error(Code::kBadValue, cause).at(field).legal(legal).fix(remedy);
}

void check(const SubmodelSpec& spec) {
  const ModelSpec& m = spec.job.model;
  const int end = end_layer(spec);
  refuse(spec.first_layer < 0 || spec.first_layer >= end || end > m.layers,
         "a part of the model has no layers, or some that the model lacks", "first_layer",
         fmt::format("layers from 0 to {}", m.layers), "give each part one layer at least");
  refuse(spec.slots < 1, "a port has no slot", "slots", "1 and more", "take as many as passes are under way");
  refuse(m.mtp.layers > 0, "a sub-model predicts one token", "model.mtp", "no \"mtp\"",
         "leave it out, or train the model as a whole");
  refuse(m.tied_head && !is_whole(spec),
         "embedding and head are one matrix, of which two parts have each half", "model.tied_head",
         "false where a model is cut into parts",
         "give the model a head of its own, or keep its layers in one part");
  refuse(!spec.job.parallel.pipeline.axis.empty(), "the stages of a sub-model are sub-models themselves",
         "parallel.pipeline", "no pipeline", "leave the axis out, and cut the model into parts");
  refuse(spec.job.parallel.tiles > 1, "the rows of experts of a sub-model are not cut into tiles",
         "parallel.tiles", "0 or 1", "leave tiles out");
  refuse(spec.job.parallel.paired_passes, "the passes of a sub-model are Programs of their own",
         "parallel.paired_passes", "false", "leave paired_passes out");
  if (!is_encoder(spec)) {
    refuse(!spec.features.empty() && !begins(spec), "features are read where the text begins", "features",
           "none, of a part that does not", "give them to the first part");
    return;
  }
  refuse(!is_whole(spec) || spec.job.training.micro_batches != 1 || !spec.features.empty(),
         "an encoder takes whole batches of items, through all its layers", "training.micro_batches", "1",
         "make the batch as large as a pass is to be");
}

// --- layouts of ports --------------------------------------------------------------------------------

std::vector<std::string> names_of(const Mesh& mesh, const AxisList& axes) {
  std::vector<std::string> names;
  for (const AxisId a : axes) names.push_back(mesh.axes[static_cast<std::size_t>(a)].name);
  return names;
}

ModelUse use_of(const SubmodelSpec& spec) {
  const TrainingSpec& training = spec.job.training;
  ModelUse use;
  use.batch = training.batch / training.micro_batches;
  use.loss_scale = 1 / (static_cast<double>(training.batch) * spec.job.model.sequence);
  use.init_std = training.init_std;
  use.purpose = Purpose::kTexts;
  return use;
}

// The layout of the residual stream behind a layer, where the text model is cut. One layer shows it for all.
std::vector<ShardRule::Dim> stream_dims(const SubmodelSpec& spec, const Mesh& mesh) {
  ModelSpec shallow = spec.job.model;
  shallow.layers = 1;
  const Graph graph =
      shard(build_model(shallow, use_of(spec)), mesh, spec.job.parallel, Rules::kThoseThatName);
  const TensorId stream = graph.find("layers.0.ffn.residual");
  HR_CHECK(stream.valid(), "a layer has no residual stream");
  std::vector<ShardRule::Dim> dims;
  for (std::size_t d = 0; d < graph[stream].dims.size(); ++d)
    dims.push_back(
        {graph[graph[stream].dims[d]].name, names_of(mesh, graph.layouts[stream.index()].dims[d])});
  return dims;
}

// The layout of an encoder's port: items are split as the job's rules split them, other dimensions are not.
std::vector<ShardRule::Dim> item_dims(const SubmodelSpec& spec, const Mesh& mesh) {
  Graph inputs;
  const DimId batch = inputs.add_dim("batch", spec.job.training.batch);
  const TensorId t = inputs.add_tensor({"inputs", DType::kF32, {batch}, TensorClass::kData});
  const auto declared = declare_layouts(inputs, mesh, spec.job.parallel, Rules::kThoseThatName);
  if (!declared[t.index()].layout) return {};
  return {{"batch", names_of(mesh, declared[t.index()].layout->dims[0])}};
}

// The job's parallelism with rules for the ports. The ports of features have no rule, so they are not split.
ParallelSpec with_ports(const SubmodelSpec& spec, const Mesh& mesh) {
  ParallelSpec parallel = spec.job.parallel;
  if (!is_encoder(spec) && is_whole(spec)) return parallel;
  const std::vector<ShardRule::Dim> dims = is_encoder(spec) ? item_dims(spec, mesh) : stream_dims(spec, mesh);
  for (const bool in : {true, false})
    if (in ? !begins(spec) : is_encoder(spec) || !ends(spec))
      parallel.rules.push_back({in ? "port.in*" : "port.out*", dims, "parallel", false, {}});
  return parallel;
}

// --- the graph --------------------------------------------------------------------------------------

// Refuses ring attention, which reorders positions: the neighbouring sub-model would read the port in its own
// order.
void require_natural_order(const Graph& graph) {
  for (const Tensor& t : graph.tensors)
    for (const DimId d : t.dims)
      if (t.cls == TensorClass::kPort && graph[d].ring > 1)
        throw Error(
            Code::kBadLayout,
            fmt::format("attention round a ring has the positions of {} in another order than the parts "
                        "beside it",
                        t.name))
            .at("parallel.presets")
            .legal("\"ring\" where the text model is one part")
            .fix("take \"cp\" in place of \"ring\", or keep the layers in one part");
}

Graph sharded(const SubmodelSpec& spec, const Mesh& mesh) {
  ModelUse use = use_of(spec);
  use.slots = spec.slots;
  use.first_layer = spec.first_layer;
  use.end_layer = end_layer(spec);
  for (const auto& of : spec.features) use.features.push_back({of.name, of.items, of.tokens});
  Graph graph = build_model(spec.job.model, use);
  require_countable(graph);
  const auto gradients = differentiate(graph);
  add_optimizer(graph, gradients, spec.job.training);
  if (clips(spec)) graph.outputs.emplace_back(kGradSquares, graph.find("grad_norm.squares"));
  if (spec.job.training.precision == kBfloat16) to_bfloat16(graph);
  verify(graph);
  dump("2-submodel", [&] { return print(graph, mesh); });
  const Rules strictness = is_whole(spec) ? Rules::kAllMustApply : Rules::kThoseThatName;
  graph = shard(graph, mesh, with_ports(spec, mesh), strictness);
  recompute(graph, spec.job.training.recompute);
  require_natural_order(graph);
  dump("3-sharded-submodel", [&] { return print(graph, mesh); });
  return graph;
}

// --- the nodes of a Program --------------------------------------------------------------------------

using NodeFilter = std::function<bool(const Node&)>;

// The nodes of `goal` and those that they are computed from, all within the nodes of `allowed`.
NodeFilter needed_for(const Graph& graph, const NodeFilter& goal, const NodeFilter& allowed) {
  std::vector<bool> needed(graph.tensors.size()), nodes(graph.nodes.size());
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& n = graph.nodes[i];
    if (!allowed(n)) continue;
    nodes[i] = goal(n) || std::ranges::any_of(n.outputs, [&](TensorId t) { return needed[t.index()]; });
    if (!nodes[i]) continue;
    for (const TensorId t : n.inputs) needed[t.index()] = true;
    if (n.addend.valid()) needed[n.addend.index()] = true;
  }
  return [&graph, nodes = std::move(nodes)](const Node& n) {
    return static_cast<bool>(nodes[static_cast<std::size_t>(&n - graph.nodes.data())]);
  };
}

// The purposes of nodes by which Programs choose them.
class NodeGoals {
 public:
  explicit NodeGoals(const Graph& graph) : graph_(graph) {}

  bool stores(const Node& n, Phase phase) const {
    return n.phase == phase && std::holds_alternative<op::StorePort>(n.op);
  }
  bool adds_to_sums(const Node& n) const {
    return std::ranges::any_of(n.outputs, [&](TensorId t) { return is_accumulated(graph_[t].cls); });
  }
  bool makes(const Node& n, std::string_view output) const {
    return std::ranges::any_of(graph_.outputs, [&](const auto& reported) {
      return reported.first == output && std::ranges::find(n.outputs, reported.second) != n.outputs.end();
    });
  }
  bool updates_state(const Node& n) const {
    return n.phase == Phase::kUpdate &&
           std::ranges::any_of(n.outputs, [&](TensorId t) { return graph_[t].updates.valid(); });
  }

 private:
  const Graph& graph_;
};

bool is_of_update(const Node& n) { return n.phase == Phase::kUpdate; }

// The tensors that pass from one Program to another: those that nodes of `first` compute or accumulate, and
// that nodes of `then` read.
std::function<bool(TensorId)> tensors_between(const Graph& graph, const NodeFilter& first,
                                              const NodeFilter& then) {
  std::vector<bool> left(graph.tensors.size()), taken(graph.tensors.size());
  for (const Node& n : graph.nodes) {
    if (first(n)) {
      for (const TensorId t : n.outputs) left[t.index()] = true;
      for (const TensorId t : n.inputs)
        if (is_accumulated(graph[t].cls)) left[t.index()] = true;
    }
    if (!then(n)) continue;
    for (const TensorId t : n.inputs) taken[t.index()] = true;
    if (n.addend.valid()) taken[n.addend.index()] = true;
  }
  for (std::size_t t = 0; t < left.size(); ++t) left[t] = left[t] && taken[t];
  return [left = std::move(left)](TensorId t) { return static_cast<bool>(left[t.index()]); };
}

// Lowers the Programs of a sub-model, each from its nodes of the graph.
class ProgramLowering {
 public:
  // `clips`: "norm" is a Program of its own, because "update" needs the norm of the whole model.
  ProgramLowering(const Graph& graph, const Mesh& mesh, bool clips)
      : graph_(graph), mesh_(mesh), goals_(graph) {
    const auto norm = [this](const Node& n) { return goals_.makes(n, kGradSquares); };
    const auto rest = [this](const Node& n) { return is_of_update(n) && !of_norm_(n); };
    const auto goal = [this](const Node& n) {
      return goals_.updates_state(n) || goals_.makes(n, "grad_norm");
    };
    of_norm_ = [](const Node&) { return false; };
    if (clips) of_norm_ = needed_for(graph, norm, is_of_update);
    of_update_ = needed_for(graph, goal, rest);
    if (clips) passed_to_update_ = tensors_between(graph, of_norm_, of_update_);
  }

  Program init() const {
    return program(
        "init", [](const Node& n) { return n.phase == Phase::kInit; }, {}, Sums::kCleared);
  }
  Program forward() const {
    return pass("forward", [this](const Node& n) { return goals_.stores(n, Phase::kForward); }, {kForward});
  }
  Program score() const {
    return pass("score", [this](const Node& n) { return goals_.makes(n, "logp"); }, {kForward});
  }
  Program backward() const {
    const auto goal = [this](const Node& n) {
      return goals_.stores(n, Phase::kBackward) || goals_.adds_to_sums(n) || goals_.makes(n, "loss");
    };
    return pass("backward", goal, {kForward, kBackward});
  }
  Program norm() const { return program("norm", of_norm_, {}, Sums::kKept); }
  Program update() const { return program("update", of_update_, {}, Sums::kCleared); }

 private:
  static constexpr SlotKind kForward = SlotKind::kForward, kBackward = SlotKind::kBackward;

  // Nodes of the update phase are allowed, too: they complete the outputs that are reported.
  Program pass(const std::string& name, const NodeFilter& goal, const std::vector<SlotKind>& slots) const {
    const auto allowed = [](const Node& n) { return n.phase != Phase::kInit; };
    return program(name, needed_for(graph_, goal, allowed), slots, Sums::kKept);
  }
  Program program(const std::string& name, const NodeFilter& wants, const std::vector<SlotKind>& slots,
                  Sums sums) const {
    LowerOptions options{name, {}, wants, {}, sums, passed_to_update_};
    for (const SlotKind kind : slots) options.slots.push_back({kind, 0, 0});
    return lower_in_order(graph_, mesh_, options).program;
  }

  const Graph& graph_;
  const Mesh& mesh_;
  NodeGoals goals_;
  NodeFilter of_norm_, of_update_;
  std::function<bool(TensorId)> passed_to_update_;
};

}  // namespace

Compiled compile_submodel(const SubmodelSpec& spec, const Moves* like) {
  check(spec);
  Compiled out{empty_plan(spec.job), {}, {}};
  out.training = sharded(spec, out.plan.mesh);
  const ProgramLowering lowering(out.training, out.plan.mesh, clips(spec));
  std::vector<Program>& programs = out.plan.roles.front().programs;
  programs.push_back(lowering.init());
  if (is_encoder(spec) || !ends(spec)) programs.push_back(lowering.forward());
  programs.push_back(lowering.backward());
  if (!is_encoder(spec) && ends(spec)) programs.push_back(lowering.score());
  if (clips(spec)) programs.push_back(lowering.norm());
  programs.push_back(lowering.update());
  assign_memory_and_events(out, spec.job, like);
  return out;
}

AxisList axes_of_replicas(const Plan& plan, const std::vector<std::string_view>& programs) {
  constexpr std::size_t kItems = 1;  // the dimension of items in a port, behind that of slots
  AxisSet apart;
  for (AxisId a = 0; a < plan.mesh.rank(); ++a)
    if (plan.mesh.size(a) > 1) apart.add(a);
  bool any = false;
  for (const Role& role : plan.roles) {
    for (const StateTensor& t : role.state)
      if (t.cls == TensorClass::kPort) apart = apart & set_of(t.layout.dims[kItems]), any = true;
    for (const std::string_view name : programs)
      for (const Instr& instr : role.program(name).instrs)
        if (const auto* c = std::get_if<instr::Collective>(&instr.op))
          for (const AxisId a : c->axes) apart.remove(a);
  }
  return any ? plan.mesh.list(apart) : AxisList{};
}

std::int64_t replicas(const Plan& plan, const std::vector<std::string_view>& programs) {
  return plan.mesh.size(axes_of_replicas(plan, programs));
}

}  // namespace hyperrun

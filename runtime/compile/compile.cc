#include "runtime/compile/compile.h"

#include <filesystem>
#include <fstream>

#include "runtime/base/error.h"
#include "runtime/base/flags.h"
#include "runtime/compile/differentiate.h"
#include "runtime/compile/events.h"
#include "runtime/compile/lower.h"
#include "runtime/compile/order.h"
#include "runtime/compile/place.h"
#include "runtime/compile/recompute.h"
#include "runtime/model/graph/model.h"
#include "runtime/shard/propagate.h"

namespace hyperrun {
namespace {

void dump(const std::string& phase, const std::string& text) {
  if (flags().dump_dir.empty()) return;
  std::filesystem::create_directories(flags().dump_dir);
  std::ofstream(std::filesystem::path(flags().dump_dir) / (phase + ".txt")) << text;
}

Graph training_graph(const Job& job, const Mesh& mesh) {
  const std::int64_t tokens = std::int64_t{job.training.batch} * job.model.sequence;
  ModelUse use;
  use.batch = job.training.batch / job.training.micro_batches;
  use.loss_scale = 1.0 / static_cast<double>(tokens);
  use.init_std = job.training.init_std;
  Graph graph = build_model(job.model, use);
  dump("1-model", print(graph, mesh));
  const auto gradients = differentiate(graph);
  add_optimizer(graph, gradients, job.training);
  verify(graph);
  dump("2-training", print(graph, mesh));
  return graph;
}

// How many sequences a generation runs at once: as few as the layout of the batch allows.
std::int64_t generation_batch(const Graph& training, const Mesh& mesh) {
  const TensorId ids = training.find("ids");
  return mesh.size(training.layouts[ids.index()].dims[0]);
}

Graph generation_graph(const Job& job, std::int64_t batch) {
  ModelUse use;
  use.batch = batch;
  use.generate = true;
  use.temperature = job.run.generate.temperature;
  use.top_k = job.run.generate.top_k;
  return build_model(job.model, use);
}

class Passes {
 public:
  explicit Passes(const Mesh& mesh) : mesh_(mesh) {}

  Program run(const Graph& graph, const LowerOptions& options) {
    auto [program, update] = lower(graph, mesh_, options);
    prefetch_weights(program, update);
    start_collectives_early(program, update);
    place_state(program, places_);
    place_buffers(program, places_);
    add_events(program);
    dump("4-program-" + options.name, print(program));
    verify(program);
    return program;
  }

  const StatePlaces& places() const { return places_; }

 private:
  const Mesh& mesh_;
  StatePlaces places_;
};

std::vector<StateTensor> state_tensors(const Graph& graph, const Mesh& mesh, const StatePlaces& places) {
  std::vector<StateTensor> list;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.saved_as.empty() || tensor.updates.valid()) continue;
    const TensorId id(static_cast<std::int64_t>(t));
    StateTensor s{tensor.saved_as,
                  tensor.cls,
                  tensor.dtype,
                  graph.shape(id),
                  graph.layouts[t],
                  places.offsets.at(tensor.name),
                  {},
                  {}};
    s.saved_shape = tensor.saved_shape.empty() ? s.shape : tensor.saved_shape;
    std::int64_t n = size_of(tensor.dtype);
    for (std::int64_t size : local_shape(s.shape, s.layout, mesh)) n *= size;
    s.bytes = Bytes(n);
    list.push_back(std::move(s));
  }
  return list;
}

bool in_phase(const Node& node, Phase phase) { return node.phase == phase; }

}  // namespace

Compiled compile(const Job& job) {
  Compiled out;
  out.plan.mesh.axes = job.parallel.mesh;
  const Mesh& mesh = out.plan.mesh;
  HR_CHECK(mesh.devices() == job.supernode.devices);
  Passes passes(mesh);

  out.training = shard(training_graph(job, mesh), mesh, job.parallel);
  recompute(out.training, job.training.recompute);
  dump("3-sharded", print(out.training, mesh));
  out.plan.programs.push_back(
      passes.run(out.training, {"init", 1, [](const Node& n) { return in_phase(n, Phase::kInit); }}));
  out.plan.programs.push_back(passes.run(
      out.training,
      {"train", job.training.micro_batches, [](const Node& n) { return !in_phase(n, Phase::kInit); }}));

  if (job.run.generate.tokens > 0) {
    const Graph graph = shard(generation_graph(job, generation_batch(out.training, mesh)), mesh, job.parallel,
                              Rules::kThoseThatApply);
    dump("3-sharded-generation", print(graph, mesh));
    // State that only a generation has is placed first: "prompt" writes it.
    out.plan.programs.push_back(passes.run(
        graph, {"prompt", 1, [](const Node& n) { return std::holds_alternative<op::LoadPrompt>(n.op); }}));
    out.plan.programs.push_back(
        passes.run(graph, {"generate", 1, [](const Node& n) { return !in_phase(n, Phase::kInit); }}));
  }
  out.plan.state = state_tensors(out.training, mesh, passes.places());
  return out;
}

}  // namespace hyperrun

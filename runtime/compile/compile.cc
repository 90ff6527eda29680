// The list of passes, in the order in which compile() runs them:
//
//   training_graph()          build_model, differentiate, add_optimizer, to_bfloat16
//   sharded_training()        shard, recompute
//   compile()                 partition, pipeline_schedule, then for each Program lower_in_order
//                             (passes.cc: lower, prefetch_weights, start_collectives_early,
//                             add_exchanged_gradients_late)
//   cut_into_tiles()          tiles of experts and of collectives (runtime/mpmd)
//   put_in_pairs()            paired passes (runtime/mpmd/pairs.h)
//   passes.cc                 the offload plan, its prefetches and stores, offsets of buffers, events, verify
//
// Plans of submodels, of which several run on one job's devices, are made by the same passes.
#include "runtime/compile/compile.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/compile/differentiate.h"
#include "runtime/compile/events.h"
#include "runtime/compile/generation.h"
#include "runtime/compile/lower.h"
#include "runtime/compile/partition.h"
#include "runtime/compile/passes.h"
#include "runtime/compile/pipeline_schedule.h"
#include "runtime/compile/place.h"
#include "runtime/compile/precision.h"
#include "runtime/compile/recompute.h"
#include "runtime/model/graph/model.h"
#include "runtime/mpmd/collective_tiles.h"
#include "runtime/mpmd/expert_tiles.h"
#include "runtime/mpmd/pairs.h"
#include "runtime/shard/propagate.h"

namespace hyperrun {
namespace {

// Refuses jobs that are too large to compile: an instruction takes some 600 bytes, and the graph of each
// stage has an entry for every tensor of the whole graph.
void require_compilable(const Graph& graph, const Job& job, std::int64_t stages) {
  constexpr std::int64_t kMostInstructions = 10'000'000, kMostTensors = 50'000'000;
  const std::int64_t nodes = std::ssize(graph.nodes), tensors = std::ssize(graph.tensors);
  if (const std::int64_t most = std::max<std::int64_t>(1, kMostInstructions / nodes);
      job.training.micro_batches > most)
    throw Error(Code::kBadValue,
                fmt::format("a step of {} micro-batches has more instructions than a Program can hold",
                            job.training.micro_batches))
        .at("training.micro_batches")
        .legal(fmt::format("1 to {}, for this model", most))
        .fix("make micro-batches of more samples each");
  if (stages * tensors > kMostTensors)
    throw Error(Code::kBadLayout,
                fmt::format("a pipeline of {} stages of a model with {} tensors is too large to be compiled",
                            stages, tensors))
        .at("parallel.pipeline")
        .legal(fmt::format("up to {} stages of this model", kMostTensors / tensors))
        .fix("take a shorter pipeline axis, or fewer layers");
}

Graph training_graph(const Job& job, const Mesh& mesh) {
  const std::int64_t tokens = std::int64_t{job.training.batch} * job.model.sequence;
  ModelUse use;
  use.batch = job.training.batch / job.training.micro_batches;
  use.loss_scale = 1.0 / static_cast<double>(tokens);
  use.init_std = job.training.init_std;
  if (const PolicySpec& policy = job.training.policy; policy.trains()) {
    use.purpose = Purpose::kPolicy;
    use.temperature = policy.temperature;
    use.clip = policy.clip;
    use.kl = policy.kl;
  }
  // Build the model's forward pass for one global device.
  Graph graph = build_model(job.model, use);
  require_countable(graph);
  dump("1-model", [&] { return print(graph, mesh); });
  // Append the backward pass.
  const auto gradients = differentiate(graph);
  // Append the norm of all gradients, its clipping, and an update of each weight.
  add_optimizer(graph, gradients, job.training);
  // Make activations and copies of the weights bfloat16.
  if (job.training.precision == kBfloat16) to_bfloat16(graph);
  verify(graph);
  dump("2-training", [&] { return print(graph, mesh); });
  return graph;
}

// Lowers the graphs of all roles to Programs of one name.
class Passes {
 public:
  explicit Passes(const Plan& plan) : plan_(plan) {}

  // Adds a Program to each role. `options` has one entry for each role; this function fills in the messages
  // that arrive. The Programs have no offsets and no events yet.
  void lower_all(const std::vector<Graph>& graphs, std::vector<LowerOptions> options,
                 std::vector<Role>& roles) {
    for (std::size_t from = 0; from < graphs.size(); ++from)
      for (auto& [to, list] : messages(graphs[from], options[from]))
        options[static_cast<std::size_t>(to)].arrivals[static_cast<int>(from)] = std::move(list);
    for (Role& role : roles) role.programs.emplace_back();
    parallel_for(graphs.size(), [&](std::size_t r) {
      roles[r].programs.back() = lower_in_order(graphs[r], plan_.mesh, options[r]).program;
    });
  }

 private:
  const Plan& plan_;
};

bool in_phase(const Node& node, Phase phase) { return node.phase == phase; }

using Schedule = std::vector<std::vector<TimedSlot>>;

// The options of every role: a predicate for nodes, and the slots of the schedule that `takes` picks.
std::vector<LowerOptions> options_for(const std::string& name, const Schedule& schedule,
                                      const std::function<bool(const Node&)>& wants,
                                      const std::function<bool(const Slot&)>& takes) {
  std::vector<LowerOptions> list;
  for (const auto& of_device : schedule) {
    LowerOptions& o = list.emplace_back(LowerOptions{name, {}, wants, {}});
    for (const TimedSlot& timed : of_device)
      if (takes(timed.slot)) o.slots.push_back(timed.slot);
  }
  return list;
}

bool every_slot(const Slot&) { return true; }
bool no_slot(const Slot&) { return false; }
bool forward_slots(const Slot& slot) { return slot.kind == SlotKind::kForward; }
bool is_init(const Node& n) { return in_phase(n, Phase::kInit); }
bool is_step(const Node& n) { return !in_phase(n, Phase::kInit); }

// Adds a Program that runs one forward pass. Returns its sharded graph.
Graph add_pass(const std::string& name, const Graph& whole, const Job& job, const Mesh& mesh, Passes& passes,
               std::vector<Role>& roles) {
  const PipelineSpec& pipeline = job.parallel.pipeline;
  // Give every tensor a layout, and insert the collectives between layouts.
  Graph graph = shard(whole, mesh, job.parallel, Rules::kThoseThatApply);
  dump("3-sharded-" + name, [&] { return print(graph, mesh); });
  // Cut the graph into one for each stage, with messages between them.
  const std::vector<Graph> parts = partition(graph, mesh, pipeline);
  // Lower the forward slots of each stage.
  const Schedule schedule = pipeline_schedule(pipeline, static_cast<int>(roles.size()), 1);
  passes.lower_all(parts, options_for(name, schedule, is_step, forward_slots), roles);
  return graph;
}

// Adds the Programs "prefill" and "decode". Returns the graph of "decode".
Graph add_generation(const Job& job, const Mesh& mesh, Weights weights, Passes& passes,
                     std::vector<Role>& roles) {
  const GenerationShape shape = generation_shape(job);
  const auto add = [&](const std::string& name, std::int64_t batch, std::int64_t tokens) {
    return add_pass(name, generation_graph(job, shape, batch, tokens, weights), job, mesh, passes, roles);
  };
  add("prefill", shape.prompts, shape.chunk);
  return add("decode", shape.slots, 1);
}

Error nothing_to_cut(const Job& job) {
  return Error(Code::kBadLayout,
               fmt::format(
                   "nothing that devices send each other stands beside what could be computed in {} tiles",
                   job.parallel.tiles))
      .at("parallel.tiles")
      .legal("1, where no rows go between devices but those of experts that lie with their tokens")
      .fix("leave tiles out, or split experts (preset \"ep\") or products (preset \"tp\") over the devices");
}

struct Cuts {
  ExpertTiling tiling;
  CollectiveTiling chunks;
  std::vector<std::int32_t> pairs;
};

// Cuts the rows of each role's last Program into tiles. Returns the cuts of each role.
std::vector<Cuts> cut_into_tiles(Plan& plan, const Job& job, const Moves* like) {
  std::vector<Cuts> cuts(plan.roles.size());
  const std::int32_t tiles = job.parallel.tiles;
  if (tiles == 1) return cuts;
  const Machine machine = machine_of(job.supernode);
  const std::vector<int> devices = plan.mesh.group(0, plan.role_axes);
  parallel_for(cuts.size(), [&](std::size_t r) {
    Program& program = plan.roles[r].programs.back();
    cuts[r].tiling =
        like != nullptr ? (*like)[r].tiling : plan_expert_tiles(program, tiles, machine, devices[r]);
    apply(program, cuts[r].tiling);
    cuts[r].chunks = like != nullptr
                         ? (*like)[r].chunks
                         : plan_collective_tiles(program, tiles, machine, devices[r], job.supernode.hbm);
    apply(program, cuts[r].chunks);
  });
  const auto is_cut = [](const Cuts& c) { return c.tiling.tiles > 1 || !c.chunks.tiles.empty(); };
  if (tiles > 1 && std::ranges::none_of(cuts, is_cut)) throw nothing_to_cut(job);
  return cuts;
}

// Merges the passes of each pair into one order, in each role's last Program.
void put_in_pairs(Plan& plan, const Job& job, const Moves* like, std::vector<Cuts>& cuts) {
  if (!job.parallel.paired_passes) return;
  const Machine machine = machine_of(job.supernode);
  const std::vector<int> devices = plan.mesh.group(0, plan.role_axes);
  parallel_for(cuts.size(), [&](std::size_t r) {
    Program& program = plan.roles[r].programs.back();
    cuts[r].pairs = like != nullptr ? (*like)[r].pairs : plan_pairs(program, machine, devices[r]);
    apply_pairs(program, cuts[r].pairs);
  });
}

}  // namespace

Graph sharded_training(const Job& job) {
  const Mesh mesh{job.parallel.mesh};
  // Give every tensor a layout, and insert the collectives between layouts.
  Graph graph = shard(training_graph(job, mesh), mesh, job.parallel);
  // Repeat in the backward pass what the job's recomputation policies do not keep.
  recompute(graph, job.training.recompute);
  dump("3-sharded", [&] { return print(graph, mesh); });
  return graph;
}

Lowered unplaced_step(const Graph& training, const Mesh& mesh, int micro_batches) {
  const Schedule schedule = pipeline_schedule({}, 1, micro_batches);
  LowerOptions options = options_for("train", schedule, is_step, every_slot).front();
  options.names = false;
  Lowered step = lower_in_order(training, mesh, options);
  place_apart(step.program);
  add_events_apart(step.program);
  return step;
}

Compiled compile(const Job& job, const Moves* like, const Refusals& refusals) {
  Compiled out{empty_plan(job), {}, {}};
  const Mesh& mesh = out.plan.mesh;
  const PipelineSpec& pipeline = job.parallel.pipeline;
  const auto roles = static_cast<int>(out.plan.roles.size());
  Passes passes(out.plan);

  // Build the graph of a step: forward pass, backward pass, update, layouts, recomputation.
  out.training = sharded_training(job);
  require_compilable(out.training, job, roles);

  // Cut the graph into one for each stage, with messages between them.
  const std::vector<Graph> stages = partition(out.training, mesh, pipeline);

  // Order the passes of all micro-batches on each device.
  const Turns turns = job.parallel.paired_passes ? Turns::kPaired : Turns::kSingle;
  const Schedule schedule = pipeline_schedule(pipeline, roles, job.training.micro_batches, turns);

  // Lower each stage to instructions: one Program that initialises the state, one that does a step.
  passes.lower_all(stages, options_for("init", schedule, is_init, no_slot), out.plan.roles);
  passes.lower_all(stages, options_for("train", schedule, is_step, every_slot), out.plan.roles);

  // Cut rows into tiles, so that one is exchanged while another is computed.
  std::vector<Cuts> cuts = cut_into_tiles(out.plan, job, like);

  // Merge a backward pass with the forward pass of a later micro-batch, where the job asks for it.
  put_in_pairs(out.plan, job, like, cuts);

  // Add the Programs of a generation that follows the training.
  if (job.run.generate.tokens > 0) add_generation(job, mesh, Weights::kWithMasters, passes, out.plan.roles);

  // Decide about transfers between tiers, place all buffers, add events, verify.
  assign_memory_and_events(out, job, like, refusals);
  for (std::size_t r = 0; r < cuts.size(); ++r) {
    out.moves[r].tiling = std::move(cuts[r].tiling);
    out.moves[r].chunks = std::move(cuts[r].chunks);
    out.moves[r].pairs = std::move(cuts[r].pairs);
  }
  return out;
}

// There is no Program "init": weights come from a checkpoint, and the passes fill the cache.
Compiled compile_generation(const Job& job, const Moves* like) {
  Compiled out{empty_plan(job), {}, {}};
  Passes passes(out.plan);
  out.training = add_generation(job, out.plan.mesh, Weights::kAlone, passes, out.plan.roles);
  assign_memory_and_events(out, job, like);
  return out;
}

Compiled compile_scoring(const Job& job, const Moves* like) {
  Compiled out{empty_plan(job), {}, {}};
  Passes passes(out.plan);
  out.training = add_pass("score", scoring_graph(job), job, out.plan.mesh, passes, out.plan.roles);
  assign_memory_and_events(out, job, like);
  return out;
}

}  // namespace hyperrun

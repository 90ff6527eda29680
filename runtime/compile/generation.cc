#include "runtime/compile/generation.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/precision.h"
#include "runtime/ir/families.h"
#include "runtime/model/graph/model.h"
#include "runtime/shard/rules.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kUsualChunk = 64;

// The number of parts into which the job's rules split the positions of a page.
std::int64_t parts_of(const Job& job) {
  const Mesh mesh{job.parallel.mesh};
  Graph cache;
  const DimId part = cache.add_dim("part", mesh.devices());
  const TensorId keys =
      cache.add_tensor({"layers.0.attention.cache.keys", DType::kF32, {part}, TensorClass::kCache});
  const auto declared = declare_layouts(cache, mesh, job.parallel, Rules::kThoseThatApply);
  const auto& layout = declared[keys.index()].layout;
  return layout ? mesh.size(layout->dims[0]) : 1;
}

std::int64_t divided(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

Error refusal(const std::string& cause, const std::string& field) {
  return Error(Code::kBadValue, cause).at("inference." + field);
}

}  // namespace

std::int64_t parts_of_batch(const Job& job) {
  const Mesh mesh{job.parallel.mesh};
  Graph tokens;
  const DimId batch = tokens.add_dim("batch", mesh.devices()), seq = tokens.add_dim("seq", 1);
  const TensorId ids = tokens.add_tensor({"ids", DType::kI32, {batch, seq}, TensorClass::kData});
  const auto declared = declare_layouts(tokens, mesh, job.parallel, Rules::kThoseThatApply);
  const auto& layout = declared[ids.index()].layout;
  return layout ? mesh.size(layout->dims[0]) : 1;
}

GenerationShape generation_shape(const Job& job) {
  const InferenceSpec& spec = job.inference;
  GenerationShape shape;
  shape.groups = parts_of_batch(job);
  shape.slots = spec.slots > 0 ? spec.slots : shape.groups;
  shape.context = spec.context > 0 ? spec.context : job.model.sequence;
  shape.chunk = spec.chunk > 0 ? spec.chunk : std::min(kUsualChunk, shape.context);
  shape.page = spec.page;
  shape.parts = parts_of(job);
  if (shape.page % shape.parts != 0)
    throw refusal(fmt::format("a page of {} positions has no {} equal parts", shape.page, shape.parts),
                  "page")
        .legal(fmt::format("multiples of {}", shape.parts))
        .fix("take one of these");
  const std::int64_t of_a_sequence = divided(shape.context, shape.page);
  const std::int64_t pages = spec.pages > 0 ? spec.pages : shape.slots * of_a_sequence;
  const std::string groups = std::to_string(shape.groups);
  if (shape.slots % shape.groups != 0)
    throw refusal(
        fmt::format("{} sequences cannot be shared out to the {} parts of the batch", shape.slots, groups),
        "slots")
        .legal("multiples of " + groups)
        .fix("take one of these, or leave slots out");
  shape.prompts = spec.prompts > 0 ? spec.prompts : shape.groups;
  if (shape.prompts % shape.groups != 0 || shape.slots % shape.prompts != 0)
    throw refusal(fmt::format("a pass takes no {} prompts of {} sequences in {} parts of the batch",
                              shape.prompts, shape.slots, groups),
                  "prompts")
        .legal(fmt::format("multiples of {} that divide {}", groups, shape.slots))
        .fix("take one of these, or leave prompts out");
  // Each slot of "decode" gets the same number of pages.
  if (pages % shape.slots != 0)
    throw refusal(fmt::format("{} pages cannot be shared out to {} sequences", pages, shape.slots), "pages")
        .legal(fmt::format("multiples of {}", shape.slots))
        .fix("take one of these, or leave pages out");
  shape.pages = pages / shape.groups;
  if (shape.pages < of_a_sequence)
    throw refusal(fmt::format("a sequence of {} positions takes {} pages, {} are there", shape.context,
                              of_a_sequence, shape.pages),
                  "pages")
        .legal(fmt::format("at least {}", of_a_sequence * shape.groups))
        .fix("take more pages, or a smaller context");
  if (shape.chunk > shape.context)
    throw refusal(fmt::format("a pass of {} tokens is longer than any sequence", shape.chunk), "chunk")
        .legal(fmt::format("1 to {}", shape.context))
        .fix("take one of these, or leave chunk out");
  const std::int64_t learned = std::max(job.model.positions, job.model.sequence);
  if (family_of(job.model).learned_positions && shape.context > learned)
    throw refusal(fmt::format("the model knows {} positions", learned), "context")
        .legal(fmt::format("1 to {}", learned))
        .fix("take a smaller context");
  return shape;
}

Graph generation_graph(const Job& job, const GenerationShape& shape, std::int64_t batch, std::int64_t tokens,
                       Weights weights) {
  ModelUse use;
  use.batch = batch;
  use.purpose = Purpose::kGenerate;
  use.tokens = tokens;
  use.context = shape.context;
  use.page = shape.page;
  use.pages = shape.pages * shape.groups;
  use.parts = shape.parts;
  use.init_std = job.training.init_std;
  use.temperature = job.run.generate.temperature;
  use.top_k = job.run.generate.top_k;
  use.top_p = job.run.generate.top_p;
  Graph graph = build_model(job.model, use);
  if (job.training.precision == kBfloat16)
    weights == Weights::kAlone ? weights_to_bfloat16(graph) : to_bfloat16(graph);
  return graph;
}

Graph scoring_graph(const Job& job) {
  ModelUse use;
  use.batch = job.training.batch / job.training.micro_batches;
  use.purpose = Purpose::kScore;
  use.temperature = job.training.policy.temperature;
  Graph graph = build_model(job.model, use);
  if (job.training.precision == kBfloat16) weights_to_bfloat16(graph);
  return graph;
}

}  // namespace hyperrun

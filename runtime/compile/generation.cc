#include "runtime/compile/generation.h"

#include <algorithm>
#include <string>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/precision.h"
#include "runtime/model/graph/model.h"
#include "runtime/shard/rules.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kUsualChunk = 64;

// Into how many parts they cut the positions of a page.
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
    throw refusal("a page of " + std::to_string(shape.page) + " positions has no " +
                      std::to_string(shape.parts) + " equal parts",
                  "page")
        .legal("multiples of " + std::to_string(shape.parts))
        .fix("take one of these");
  const std::int64_t of_a_sequence = divided(shape.context, shape.page);
  const std::int64_t pages = spec.pages > 0 ? spec.pages : shape.slots * of_a_sequence;
  const std::string groups = std::to_string(shape.groups);
  if (shape.slots % shape.groups != 0)
    throw refusal(std::to_string(shape.slots) + " sequences cannot be shared out to the " + groups +
                      " parts of the batch",
                  "slots")
        .legal("multiples of " + groups)
        .fix("take one of these, or leave slots out");
  shape.prompts = spec.prompts > 0 ? spec.prompts : shape.groups;
  if (shape.prompts % shape.groups != 0 || shape.slots % shape.prompts != 0)
    throw refusal("a pass takes no " + std::to_string(shape.prompts) + " prompts of " +
                      std::to_string(shape.slots) + " sequences in " + groups + " parts of the batch",
                  "prompts")
        .legal("multiples of " + groups + " that divide " + std::to_string(shape.slots))
        .fix("take one of these, or leave prompts out");
  // Of decode's slots, each with as many.
  if (pages % shape.slots != 0)
    throw refusal(std::to_string(pages) + " pages cannot be shared out to " + std::to_string(shape.slots) +
                      " sequences",
                  "pages")
        .legal("multiples of " + std::to_string(shape.slots))
        .fix("take one of these, or leave pages out");
  shape.pages = pages / shape.groups;
  if (shape.pages < of_a_sequence)
    throw refusal("a sequence of " + std::to_string(shape.context) + " positions takes " +
                      std::to_string(of_a_sequence) + " pages, " + std::to_string(shape.pages) + " are there",
                  "pages")
        .legal("at least " + std::to_string(of_a_sequence * shape.groups))
        .fix("take more pages, or a smaller context");
  if (shape.chunk > shape.context)
    throw refusal("a pass of " + std::to_string(shape.chunk) + " tokens is longer than any sequence", "chunk")
        .legal("1 to " + std::to_string(shape.context))
        .fix("take one of these, or leave chunk out");
  const std::int64_t learned = std::max(job.model.positions, job.model.sequence);
  if (job.model.name == "gpt2" && shape.context > learned)
    throw refusal("the model knows " + std::to_string(learned) + " positions", "context")
        .legal("1 to " + std::to_string(learned))
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

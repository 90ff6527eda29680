#include "runtime/verify/random_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/ir/pipeline.h"
#include "runtime/ir/presets.h"

namespace hyperrun {
namespace {

// Random numbers that are the same with every standard library: the standard fixes the numbers of mt19937_64,
// not those of distributions.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  int one_of(std::initializer_list<int> list) { return list.begin()[below(list.size())]; }
  bool chance(std::size_t of, std::size_t in) { return below(in) < of; }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

 private:
  std::mt19937_64 random_;
};

// --- model and training -----------------------------------------------------------------------------

ExpertsSpec random_experts(Dice& dice, int layers) {
  ExpertsSpec e;
  e.count = dice.one_of({2, 4, 8});
  e.choices = dice.one_of({1, 2});
  e.ffn = dice.one_of({8, 12});
  e.shared = dice.one_of({0, 1});
  e.dense_layers = static_cast<std::int32_t>(dice.below(static_cast<std::size_t>(layers)));
  if (dice.chance(1, 2)) e.scoring = "sigmoid";
  if (dice.chance(1, 2)) e.aux_loss = 0.01;
  if (dice.chance(1, 2)) e.bias_rate = 0.001;
  if (dice.chance(1, 3)) e.groups = 2, e.group_choices = e.count == 2 && e.choices == 2 ? 2 : 1;
  if (dice.chance(1, 2)) e.capacity = {dice.one_of({1, 2}) * 0.75, dice.one_of({0, 4})};
  return e;
}

void draw_latent_attention(Dice& dice, ModelSpec& m) {
  m.name = "deepseek_v3";
  m.kv_heads = m.heads;
  m.latent.q_rank = dice.one_of({0, 6, 16});
  m.latent.kv_rank = dice.one_of({4, 7, 16});
  m.latent.nope_dim = dice.one_of({2, 3, 8});
  m.latent.rope_dim = dice.one_of({2, 4});
  m.latent.value_dim = dice.one_of({2, 5, 8});
  m.head_dim = m.latent.nope_dim + m.latent.rope_dim;
}

void become_gpt2(Dice& dice, ModelSpec& m) {
  m.name = "gpt2";
  m.kv_heads = m.heads;
  m.hidden = m.heads * m.head_dim;
  m.positions = dice.one_of({0, m.sequence + 6});
}

// A window, in some layers or in all; biases.
void become_qwen2(Dice& dice, ModelSpec& m) {
  m.name = "qwen2";
  m.window = dice.one_of({1, 2, 3, 5, 8, 13});
  if (dice.chance(1, 2))
    m.window_layers = {{static_cast<std::int32_t>(dice.below(static_cast<std::size_t>(m.layers))),
                        m.layers - 1, dice.one_of({1, 2})}};
}

ModelSpec random_model(Dice& dice) {
  ModelSpec m;
  if (dice.chance(1, 4)) m.name = "qwen3";
  m.layers = dice.one_of({1, 2, 3, 4});
  m.kv_heads = dice.one_of({1, 2, 3, 4, 8});
  m.heads = m.kv_heads * dice.one_of({1, 2, 3});
  m.head_dim = dice.one_of({2, 4, 8});
  m.hidden = dice.one_of({8, 20, 24, 48, 64});
  m.ffn = dice.one_of({8, 12, 24, 40, 64});
  m.vocab = dice.one_of({257, 258, 264, 280, 320});
  m.sequence = dice.one_of({8, 12, 16, 20, 24, 32});
  m.tied_head = dice.chance(1, 2);
  if (dice.chance(1, 4)) m.experts = random_experts(dice, m.layers);
  if (m.name == "llama" && dice.chance(1, 3)) draw_latent_attention(dice, m);
  if (dice.chance(1, 4)) m.mtp.layers = dice.one_of({1, 2});
  if (m.name == "llama" && m.experts.count == 0 && m.mtp.layers == 0 && dice.chance(1, 2))
    become_gpt2(dice, m);
  if (m.name == "llama" && dice.chance(1, 2)) become_qwen2(dice, m);
  if (m.name == "llama" && m.experts.count == 0) m.attention_bias = m.mlp_bias = dice.chance(1, 2);
  return m;
}

RecomputeSpec random_recompute(Dice& dice, int layers) {
  RecomputeSpec r;
  r.policy = dice.chance(1, 2) ? "full" : "selective";
  r.first_layer = static_cast<std::int32_t>(dice.below(static_cast<std::size_t>(layers)));
  r.last_layer = layers - 1;
  return r;
}

TrainingSpec random_training(Dice& dice, const ModelSpec& model) {
  TrainingSpec t;
  t.steps = 10;
  t.micro_batches = dice.one_of({1, 1, 2, 3});
  t.batch = t.micro_batches * dice.one_of({1, 2, 4, 6, 8});
  t.lr = 1e-3;
  t.min_lr = 1e-4;
  t.clip_norm = dice.one_of({0, 1});
  if (dice.chance(1, 3)) t.recompute.push_back(random_recompute(dice, model.layers));
  // A single token that chooses another expert after rounding would differ too much among few tokens.
  if (model.experts.count == 0 && dice.chance(1, 2)) t.precision = kBfloat16;
  return t;
}

Job random_small_job(Dice& dice, std::uint64_t seed) {
  Job job;
  job.model = random_model(dice);
  job.training = random_training(dice, job.model);
  job.data.corpus = "/dev/null";  // a verification makes up its text
  job.run.seed = seed;
  return job;
}

// --- mesh, presets and pipeline ---------------------------------------------------------------------

std::set<std::string_view> axes_of(const Preset& preset) {
  std::set<std::string_view> axes;
  for (const PresetRule& rule : preset.rules) axes.insert(rule.axis);
  return axes;
}

bool fits(const Preset& preset, const std::vector<MeshAxis>& mesh) {
  const auto there = [&](std::string_view axis) {
    return std::ranges::count(mesh, axis, &MeshAxis::name) > 0;
  };
  const std::set<std::string_view> axes = axes_of(preset);
  return preset.any_axis ? std::ranges::any_of(axes, there) : std::ranges::all_of(axes, there);
}

constexpr std::string_view kPipelineAxis = "pp";

// Draws the axes of some presets, or that of a pipeline. The devices are dealt out to them in factors of 2,
// so some axes may have size 1.
std::vector<MeshAxis> random_mesh(Dice& dice, int devices) {
  std::set<std::set<std::string_view>> distinct{{kPipelineAxis}};
  for (const Preset& preset : kPresets)
    if (!preset.any_axis) distinct.insert(axes_of(preset));
  std::vector<std::set<std::string_view>> families(distinct.begin(), distinct.end());
  dice.shuffle(families);
  families.resize(1 + dice.below(3));
  std::vector<MeshAxis> mesh;
  for (const auto& family : families)
    for (const std::string_view axis : family) mesh.push_back({std::string(axis), 1});
  dice.shuffle(mesh);
  for (std::size_t next = 0; devices > 1; devices /= 2) mesh[next++ % mesh.size()].size *= 2;
  dice.shuffle(mesh);
  return mesh;
}

// A pipeline on the mesh's axis for it; nullopt if there is none, or the model has fewer layers than devices.
std::optional<PipelineSpec> random_pipeline(Dice& dice, const std::vector<MeshAxis>& mesh, int layers) {
  const auto axis =
      std::find_if(mesh.begin(), mesh.end(), [](const MeshAxis& a) { return a.name == kPipelineAxis; });
  PipelineSpec pipeline;
  if (axis == mesh.end()) return pipeline;
  if (axis->size > layers) return {};
  pipeline.axis = kPipelineAxis;
  pipeline.chunks = dice.chance(1, 2) ? std::min(2, layers / axis->size) : 1;
  pipeline.stages = even_stages(axis->size, pipeline.chunks, layers);
  const std::vector<std::string> schedules{"gpipe", "1f1b", "zero_bubble"};
  pipeline.schedule = pipeline.chunks > 1 && dice.chance(1, 2) ? "interleaved" : schedules[dice.below(3)];
  return pipeline;
}

std::vector<std::string> random_presets(Dice& dice, const std::vector<MeshAxis>& mesh) {
  std::vector<std::string> presets;
  for (const Preset& preset : kPresets)
    if (fits(preset, mesh) && dice.chance(4, 5)) presets.emplace_back(preset.name);
  // Experts use the tensor axis in one way only; whole experts need tokens that are split over it.
  const auto has = [&](std::string_view name) { return std::ranges::find(presets, name) != presets.end(); };
  if (has("ep_tp") && (!has("sp") || dice.chance(1, 2))) std::erase(presets, "ep_tp");
  if (has("ep_tp")) std::erase(presets, "etp");
  dice.shuffle(presets);
  return presets;
}

// --- rules ------------------------------------------------------------------------------------------

// A pattern for the tensor in one layer, or in all layers.
std::string random_pattern(Dice& dice, const std::string& tensor) {
  constexpr std::string_view kLayers = "layers.";
  if (!tensor.starts_with(kLayers) || dice.chance(1, 3)) return tensor;
  return "layers.*" + tensor.substr(tensor.find('.', kLayers.size()));
}

// Some of the axes that may split tensors.
std::vector<std::string> random_axes(Dice& dice, std::vector<MeshAxis> mesh) {
  std::erase_if(mesh, [](const MeshAxis& a) { return a.name == kPipelineAxis; });
  dice.shuffle(mesh);
  std::vector<std::string> axes;
  for (std::size_t n = std::min(mesh.size(), dice.below(3)); n > 0; --n) axes.push_back(mesh[n - 1].name);
  return axes;
}

ShardRule random_rule(Dice& dice, const Graph& graph, const std::vector<MeshAxis>& mesh) {
  std::vector<const Tensor*> tensors;
  for (const Tensor& t : graph.tensors)
    if (!t.dims.empty() && !t.updates.valid() && t.cls != TensorClass::kExchanged) tensors.push_back(&t);
  const Tensor& tensor = *tensors[dice.below(tensors.size())];
  const std::size_t split = dice.below(tensor.dims.size());
  ShardRule rule;
  rule.tensor = random_pattern(dice, tensor.name);
  rule.origin = "random";
  rule.stored = dice.chance(1, 4);
  const std::vector<std::string> axes = random_axes(dice, mesh);
  if (dice.chance(1, 4)) {
    rule.layout = PositionalLayout{{}, std::vector<std::vector<std::string>>(tensor.dims.size())};
    rule.layout->dims[split] = axes;
  } else {
    rule.dims = {{graph[tensor.dims[split]].name, axes}};
  }
  return rule;
}

// The sharded graph; nullopt if the layout is not legal. If the compiler fails, the graph is empty, so that
// the verification reports it. The same holds for a layout of presets alone that is refused for anything but
// sizes.
std::optional<Graph> sharded_if_legal(const Job& job) {
  try {
    return sharded_training(job);
  } catch (const Error& e) {
    const bool of_sizes = e.cause().find(" of size ") != std::string::npos;
    if (e.code() == Code::kBadLayout && (of_sizes || !job.parallel.rules.empty())) return {};
    return Graph{};
  }
}

void add_rules(Dice& dice, Job& job, Graph graph) {
  for (std::size_t n = dice.below(5); n > 0 && !graph.nodes.empty(); --n) {
    job.parallel.rules.push_back(random_rule(dice, graph, job.parallel.mesh));
    if (auto legal = sharded_if_legal(job))
      graph = std::move(*legal);
    else
      job.parallel.rules.pop_back();
  }
}

}  // namespace

Job random_job(std::uint64_t seed, const Job* base) {
  constexpr std::size_t kLongestStem = 32;
  Dice dice(seed);
  const int devices = dice.one_of({2, 4, 8, 8, 16});
  for (;;) {  // this ends, because a mesh without presets and stages suits every model
    Job job = base != nullptr ? *base : random_small_job(dice, seed);
    job.name =
        fmt::format("{}random-{}", (base != nullptr ? base->name.substr(0, kLongestStem) + "-" : ""), seed);
    job.supernode.devices = devices;
    job.supernode.hbm = kGiB * 1024;  // whether it fits is another question
    job.parallel = {random_mesh(dice, devices), {}, {}, {}};
    job.parallel.presets = random_presets(dice, job.parallel.mesh);
    auto pipeline = random_pipeline(dice, job.parallel.mesh, job.model.layers);
    if (!pipeline) continue;
    job.parallel.pipeline = std::move(*pipeline);
    job.parallel.paired_passes =
        job.training.micro_batches > 1 && job.parallel.pipeline.schedule != "gpipe" && dice.chance(1, 3);
    auto graph = sharded_if_legal(job);
    if (!graph) continue;
    add_rules(dice, job, std::move(*graph));
    return job;
  }
}

}  // namespace hyperrun

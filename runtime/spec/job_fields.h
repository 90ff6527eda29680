// The schema as C++: the member of the Job that each field of proto/job.proto fills, and the values that it
// may hold. Reader and writer both walk this list, so they cannot disagree. A visitor has
//   integer, real, reals, flag, text, choice, choices, bytes, time, rate, seconds, streams, strings, layout,
//   block, optional (a block that is left out when it says nothing), list
// and is handed members by reference; defaults are the members' own initial values (those that depend on
// other fields are computed in job_check.cc).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/ir/families.h"
#include "runtime/ir/job.h"
#include "runtime/ir/limits.h"
#include "runtime/ir/presets.h"
#include "runtime/spec/job_quantity.h"

namespace hyperrun {

// kToRun: a command that trains requires the field; one that only looks ahead does without.
enum class Need { kOptional, kRequired, kToRun };

struct IntRange {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int32_t>::max();
};

struct RealRange {
  double min = 0;
  bool min_itself = true;
  double max = std::numeric_limits<double>::infinity();
  bool max_itself = true;
  bool whole = false;
};
constexpr RealRange kAboveZero{.min_itself = false};
constexpr RealRange kAtLeastZero{};
constexpr RealRange kDecay{.max = 1, .max_itself = false};

struct Choice {
  std::string_view value;
  std::string_view meaning;
};
inline const std::vector<Choice> kModels = [] {
  std::vector<Choice> choices;
  for (const ModelFamily& family : families()) choices.push_back({family.name, family.meaning});
  return choices;
}();
inline constexpr Choice kRopeTypes[] = {
    {kLinearRope, "all pairs turn more slowly"},
    {kDynamicRope, "a larger theta for long texts"},
    {kYarnRope, "slow pairs turn more slowly, fast ones as before"},
    {kLlama3Rope, "the same, with the bounds of Llama 3.1"},
    {kLongRope, "a factor for each pair"},
};
inline constexpr Choice kScorings[] = {
    {"softmax", "probabilities over all experts"},
    {"sigmoid", "each expert for itself"},
};
inline constexpr Choice kRecomputePolicies[] = {
    {"none", "everything is kept"},
    {"selective", "what follows from kept tensors without a product or a message: norms, SwiGLU"},
    {"full", "all of a layer but its input"},
};
inline constexpr Choice kPrecisions[] = {
    {kFloat32, "everything"},
    {kBfloat16, "activations, and weights as products take them; weights, sums and statistics stay float32"},
};
inline constexpr Choice kGradients[] = {
    {kFloat32, "as they are summed up over micro-batches"},
    {kBfloat16, "rounded before devices add them up, and their sum once more: half of the bytes"},
};
inline constexpr Choice kMemoryPolicies[] = {
    {"none", "everything stays in HBM"},
    {"reactive", "what was not used for longest leaves when room is needed, and comes when it is used"},
    {"weights", "weights only, fetched ahead of their use"},
    {"hyperoffload", "planned by the lifetimes of all tensors, so that transfers hide"},
};
inline constexpr Choice kMemoryTiers[] = {
    {"pool", "the DDR that all devices share"},
    {"flash", "a file of each device"},
};
inline constexpr Choice kMovedTensors[] = {
    {"weights", "and their copies for products"},
    {"gradients", "their sums over micro-batches, too"},
    {"optimizer", "its state"},
    {"activations", "kept for the backward pass"},
    {"cache", "keys and values of the sequences that are generated"},
};
inline constexpr Choice kClocks[] = {
    {kNative, "as fast as the host can"},
    {kPaced, "each training step to scale of the simulated machine, stretched so that the real work fits"},
};
inline constexpr Choice kOnDivergence[] = {
    {kStop, "the run ends with an error"},
    {kSkip, "it goes on from the last checkpoint, with the samples behind those of the step that diverged"},
};
inline constexpr Choice kFaultKinds[] = {
    {kKillFault, "the process ends at once"},
    {kStopFault, "the process stands still, as one that hangs"},
    {kSlowFault, "the step lasts longer on the device"},
    {kCutFault, "the connection to the controller ends"},
    {kFullDiskFault, "the device's part of a checkpoint finds no space"},
    {kFlipFault, "a bit of a weight flips in the device's memory"},
};
inline constexpr Choice kPipelineSchedules[] = {
    {"gpipe", "all forward passes, then all backward passes"},
    {"1f1b", "a backward pass as soon as there is one: fewer activations at once"},
    {"interleaved", "1f1b with several stages on each device: shorter bubbles, more messages"},
    {"zero_bubble", "1f1b with the gradients of weights computed where the device would stand idle"},
};
inline constexpr Choice kProgramTasks[] = {
    {kGenerates, "completes prompts with the weights of another program"},
    {kRewards, "judges completions by a rule, on no device"},
    {kScores, "tells the log probabilities that the first weights give to completions"},
    {kTrains, "learns from completions, rewards and scores, or from text behind features"},
    {kEncodes, "makes features of pictures or sounds"},
};
inline constexpr Choice kEncoderInputs[] = {
    {kImage, "patches of pictures"},
    {kAudio, "log-mel frames of sounds"},
};
inline constexpr Choice kLearnt[] = {
    {"text", "the sample's text"},
    {"category", "its category"},
};
inline constexpr Choice kOrders[] = {
    {kDynamicOrder, "what is ready"},
    {kStaticOrder, "one order, settled before the step"},
};
inline constexpr Choice kRewardRules[] = {
    {"answer", "1 for the task's answer, else 0"},
    {"arithmetic", "the same of numbers, and a part of it for one that is near"},
};
inline constexpr auto kPresetChoices = [] {
  std::array<Choice, kPresets.size()> choices;
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = {kPresets[i].name, kPresets[i].meaning};
  return choices;
}();

template <class Visitor>
void fields(Visitor& v, SupernodeSpec& s) {
  v.text("profile", s.profile, Need::kOptional);
  v.text("software", s.software, Need::kOptional);
  const bool flat = s.profile.empty();
  v.integer("devices", s.devices, Need::kRequired, {1, 1 << 20});
  v.integer("spares", s.spares, Need::kOptional, {0, 1 << 20});
  v.bytes("hbm", s.hbm, flat ? Need::kRequired : Need::kOptional, 1);
  v.bytes("pool", s.pool, Need::kOptional, 0);
  v.bytes("flash", s.flash, Need::kOptional, 0);
  if (!flat) return;  // a profile replaces all fields that follow
  v.rate("cube_flops", s.cube_flops, QuantityKind::kFlopRate);
  v.rate("vector_flops", s.vector_flops, QuantityKind::kFlopRate);
  v.rate("hbm_bandwidth", s.hbm_bandwidth, QuantityKind::kByteRate);
  v.rate("link_bandwidth", s.link_bandwidth, QuantityKind::kByteRate);
  v.time("link_latency", s.link_latency);
  v.time("launch_latency", s.launch_latency);
  v.rate("pool_bandwidth", s.pool_bandwidth, QuantityKind::kByteRate);
  v.time("pool_latency", s.pool_latency);
  v.rate("flash_bandwidth", s.flash_bandwidth, QuantityKind::kByteRate);
  v.time("flash_latency", s.flash_latency);
}

template <class Visitor>
void fields(Visitor& v, CapacitySpec& c) {
  v.real("factor", c.factor, Need::kRequired, kAboveZero);
  v.integer("group", c.group, Need::kOptional, {0, 1 << 24});
  v.flag("drop", c.drop);
}

template <class Visitor>
void fields(Visitor& v, LayerRange& r) {
  v.integer("first_layer", r.first_layer, Need::kOptional, {0, 1 << 20});
  v.integer("last_layer", r.last_layer, Need::kOptional, {0, 1 << 20});
  v.integer("every", r.every, Need::kOptional, {1, limits::kLayers});
}

template <class Visitor>
void fields(Visitor& v, ExpertsSpec& e) {
  v.integer("count", e.count, Need::kRequired, {1, limits::kExperts});
  v.integer("choices", e.choices, Need::kOptional, {1, limits::kExperts});
  v.integer("ffn", e.ffn, Need::kRequired, {1, limits::kFfn});
  v.integer("shared", e.shared, Need::kOptional, {0, limits::kSharedExperts});
  v.integer("dense_layers", e.dense_layers, Need::kOptional, {0, limits::kLayers});
  v.choice("scoring", e.scoring, kScorings);
  v.flag("normalize", e.normalize);
  v.real("scale", e.scale, Need::kOptional, kAboveZero);
  v.real("aux_loss", e.aux_loss, Need::kOptional, kAtLeastZero);
  v.real("bias_rate", e.bias_rate, Need::kOptional, kAtLeastZero);
  v.integer("groups", e.groups, Need::kOptional, {1, limits::kExperts});
  v.integer("group_choices", e.group_choices, Need::kOptional, {1, limits::kExperts});
  v.optional("capacity", e.capacity);
  v.integer("group_best", e.group_best, Need::kOptional, {1, 2});
  v.list("dense", e.dense);
}

template <class Visitor>
void fields(Visitor& v, LatentSpec& l) {
  v.integer("q_rank", l.q_rank, Need::kOptional, {0, limits::kRank});
  v.integer("kv_rank", l.kv_rank, Need::kRequired, {1, limits::kRank});
  v.integer("nope_dim", l.nope_dim, Need::kRequired, {1, limits::kHeadDim});
  v.integer("rope_dim", l.rope_dim, Need::kRequired, {2, limits::kHeadDim});
  v.integer("value_dim", l.value_dim, Need::kRequired, {1, limits::kHeadDim});
}

template <class Visitor>
void fields(Visitor& v, MtpSpec& m) {
  v.integer("layers", m.layers, Need::kRequired, {1, limits::kMtpLayers});
  v.real("loss_factor", m.loss_factor, Need::kOptional, kAboveZero);
}

template <class Visitor>
void fields(Visitor& v, RopeScaling& r) {
  v.real("factor", r.factor, Need::kRequired, kAboveZero);
  v.real("low_freq_factor", r.low_freq_factor, Need::kOptional, kAboveZero);
  v.real("high_freq_factor", r.high_freq_factor, Need::kOptional, kAboveZero);
  v.integer("original_sequence", r.original_sequence, Need::kOptional, {0, limits::kSequence});
  v.choice("rope_type", r.type, kRopeTypes);
  v.real("attention_factor", r.attention_factor, Need::kOptional, kAtLeastZero);
  v.real("beta_fast", r.beta_fast, Need::kOptional, kAboveZero);
  v.real("beta_slow", r.beta_slow, Need::kOptional, kAboveZero);
  v.real("mscale", r.mscale, Need::kOptional, kAtLeastZero);
  v.real("mscale_all_dim", r.mscale_all_dim, Need::kOptional, kAtLeastZero);
  v.flag("truncate", r.truncate);
  v.reals("short_factor", r.short_factor, kAboveZero);
  v.reals("long_factor", r.long_factor, kAboveZero);
}

template <class Visitor>
void fields(Visitor& v, ModelSpec& m) {
  v.choice("name", m.name, kModels);
  v.integer("layers", m.layers, Need::kRequired, {1, limits::kLayers});
  v.integer("hidden", m.hidden, Need::kRequired, {1, limits::kHidden});
  v.integer("heads", m.heads, Need::kRequired, {1, limits::kHeads});
  v.integer("kv_heads", m.kv_heads, Need::kOptional, {1, limits::kHeads});
  v.integer("head_dim", m.head_dim, Need::kOptional, {2, limits::kHeadDim});
  v.integer("ffn", m.ffn, Need::kOptional, {1, limits::kFfn});
  v.integer("vocab", m.vocab, Need::kRequired, {257, limits::kVocab});
  v.integer("sequence", m.sequence, Need::kRequired, {2, limits::kSequence});
  v.real("rope_theta", m.rope_theta, Need::kOptional, kAboveZero);
  v.real("norm_eps", m.norm_eps, Need::kOptional, kAboveZero);
  v.flag("tied_head", m.tied_head);
  v.optional("experts", m.experts);
  v.optional("latent", m.latent);
  v.optional("mtp", m.mtp);
  v.integer("positions", m.positions, Need::kOptional, {0, limits::kSequence});
  v.optional("rope_scaling", m.rope_scaling);
  v.file("from", m.from, Need::kOptional);
  v.flag("attention_bias", m.attention_bias);
  v.flag("mlp_bias", m.mlp_bias);
  v.integer("window", m.window, Need::kOptional, {0, limits::kSequence});
  v.list("window_layers", m.window_layers);
  v.integer("rotary_dim", m.rotary_dim, Need::kOptional, {0, limits::kHeadDim});
}

template <class Visitor>
void fields(Visitor& v, MeshAxis& a) {
  v.text("name", a.name, Need::kRequired);
  v.integer("size", a.size, Need::kRequired, {1, 1 << 20});
}

template <class Visitor>
void fields(Visitor& v, ShardRule::Dim& d) {
  v.text("dim", d.dim, Need::kRequired);
  v.strings("axes", d.axes);
}

template <class Visitor>
void fields(Visitor& v, ShardRule& r) {
  v.text("tensor", r.tensor, Need::kRequired);
  v.list("dims", r.dims);
  v.layout("layout", r.layout);
  v.flag("stored", r.stored);
  v.text("origin", r.origin, Need::kOptional);
}

template <class Visitor>
void fields(Visitor& v, PipelineSpec::Stage& s) {
  v.integer("device", s.device, Need::kRequired, {0, (1 << 20) - 1});
  v.integer("layers", s.layers, Need::kRequired, {0, 4096});
}

template <class Visitor>
void fields(Visitor& v, PipelineSpec& p) {
  v.text("axis", p.axis, Need::kRequired);
  v.choice("schedule", p.schedule, kPipelineSchedules);
  v.integer("chunks", p.chunks, Need::kOptional, {1, 4096});
  v.list("stages", p.stages);
}

template <class Visitor>
void fields(Visitor& v, ParallelSpec& p) {
  v.list("mesh", p.mesh);
  v.choices("presets", p.presets, kPresetChoices);
  v.list("rules", p.rules);
  v.optional("pipeline", p.pipeline);
  v.choice("gradients", p.gradients, kGradients);
  v.integer("tiles", p.tiles, Need::kOptional, {0, limits::kTiles});
  v.flag("paired_passes", p.paired_passes);
}

template <class Visitor>
void fields(Visitor& v, MemorySpec& m) {
  v.choice("policy", m.policy, kMemoryPolicies);
  v.choice("tier", m.tier, kMemoryTiers);
  v.choices("tensors", m.tensors, kMovedTensors);
}

template <class Visitor>
void fields(Visitor& v, DataSpec& d) {
  v.file("tasks", d.tasks, Need::kOptional);
  v.file("samples", d.samples, Need::kOptional);
  v.file("corpus", d.corpus, d.tasks.empty() && d.samples.empty() ? Need::kToRun : Need::kOptional);
  v.file("tokenizer", d.tokenizer, Need::kOptional);
}

template <class Visitor>
void fields(Visitor& v, RecomputeSpec& r) {
  v.choice("policy", r.policy, kRecomputePolicies);
  v.integer("first_layer", r.first_layer, Need::kOptional, {0, 1 << 20});
  v.integer("last_layer", r.last_layer, Need::kOptional, {0, 1 << 20});
}

template <class Visitor>
void fields(Visitor& v, PolicySpec& p) {
  v.real("clip", p.clip, Need::kRequired, {.min_itself = false, .max = 1, .max_itself = false});
  v.real("kl", p.kl, Need::kOptional, kAtLeastZero);
  v.real("temperature", p.temperature, Need::kOptional, kAboveZero);
}

template <class Visitor>
void fields(Visitor& v, TrainingSpec& t) {
  v.integer("steps", t.steps, Need::kToRun, {1, 1'000'000'000});
  v.integer("batch", t.batch, Need::kRequired, {1, 1 << 24});
  v.integer("micro_batches", t.micro_batches, Need::kOptional, {1, 1 << 24});
  v.real("lr", t.lr, Need::kToRun, kAboveZero);
  v.real("min_lr", t.min_lr, Need::kOptional, kAtLeastZero);
  v.integer("warmup_steps", t.warmup_steps, Need::kOptional, {});
  v.real("beta1", t.beta1, Need::kOptional, kDecay);
  v.real("beta2", t.beta2, Need::kOptional, kDecay);
  v.real("eps", t.eps, Need::kOptional, kAboveZero);
  v.real("weight_decay", t.weight_decay, Need::kOptional, kAtLeastZero);
  v.real("clip_norm", t.clip_norm, Need::kOptional, kAtLeastZero);
  v.real("init_std", t.init_std, Need::kOptional, kAboveZero);
  v.list("recompute", t.recompute);
  v.choice("precision", t.precision, kPrecisions);
  v.optional("policy", t.policy);
}

template <class Visitor>
void fields(Visitor& v, GenerateSpec& g) {
  v.text("prompt", g.prompt, Need::kOptional);
  v.integer("tokens", g.tokens, Need::kRequired, {0, 1 << 20});
  v.real("temperature", g.temperature, Need::kOptional, kAtLeastZero);
  v.integer("top_k", g.top_k, Need::kOptional, {});
  v.real("top_p", g.top_p, Need::kOptional, {.min_itself = false, .max = 1});
}

template <class Visitor>
void fields(Visitor& v, InferenceSpec& i) {
  v.integer("slots", i.slots, Need::kOptional, {0, 1 << 20});
  v.integer("context", i.context, Need::kOptional, {0, 1 << 24});
  v.integer("chunk", i.chunk, Need::kOptional, {0, 1 << 24});
  v.integer("page", i.page, Need::kOptional, {1, 1 << 16});
  v.integer("pages", i.pages, Need::kOptional, {0, 1 << 28});
  v.integer("prompts", i.prompts, Need::kOptional, {0, 1 << 20});
}

template <class Visitor>
void fields(Visitor& v, ShrinkSpec& s) {
  v.integer("depth", s.depth, Need::kOptional, {1, 4096});
  v.integer("width", s.width, Need::kOptional, {1, 1 << 16});
  v.integer("sequence", s.sequence, Need::kOptional, {1, 1 << 20});
  v.integer("vocab", s.vocab, Need::kOptional, {1, 1 << 16});
  v.integer("batch", s.batch, Need::kOptional, {1, 1 << 20});
}

template <class Visitor>
void fields(Visitor& v, IntegritySpec& i) {
  v.integer("every", i.every, Need::kOptional, {});
  v.flag("checksums", i.checksums);
}

template <class Visitor>
void fields(Visitor& v, FaultSpec& f) {
  v.choice("kind", f.kind, kFaultKinds);
  v.integer("device", f.device, Need::kOptional, {0, (1 << 20) - 1});
  v.integer("step", f.step, Need::kOptional, {});
  v.flag("saving", f.saving);
  v.real("seconds", f.seconds, Need::kOptional, {.max = 3600});
  v.flag("for_good", f.for_good);
  v.integer("back", f.back, Need::kOptional, {});
}

template <class Visitor>
void fields(Visitor& v, ChaosSpec& c) {
  v.integer("seed", c.seed);
  v.integer("faults", c.faults, Need::kOptional, {.max = 100'000});
  v.choices("kinds", c.kinds, kFaultKinds);
  v.list("fault", c.certain);
  v.file("model", c.model, Need::kOptional);
}

template <class Visitor>
void fields(Visitor& v, RunSpec& r) {
  v.file("directory", r.directory, Need::kOptional);
  v.integer("seed", r.seed);
  v.integer("checkpoint_every", r.checkpoint_every, Need::kOptional, {});
  v.file("resume", r.resume, Need::kOptional);
  v.integer("trace_first", r.trace_first, Need::kOptional, {});
  v.integer("trace_steps", r.trace_steps, Need::kOptional, {});
  v.streams("streams", r.streams);
  v.seconds("heartbeat", r.heartbeat_seconds, 0.01, 3600);
  v.block("generate", r.generate, Need::kOptional);
  v.choice("clock", r.clock, kClocks);
  v.real("dilation", r.dilation, Need::kOptional, {.max = 1e9});
  v.optional("shrink", r.shrink);
  v.integer("restarts", r.restarts, Need::kOptional, {0, 1 << 20});
  v.flag("elastic", r.elastic);
  v.integer("keep_last", r.keep_last, Need::kOptional, {});
  v.integer("keep_every", r.keep_every, Need::kOptional, {});
  v.integer("copy_every", r.copy_every, Need::kOptional, {});
  v.choice("on_divergence", r.on_divergence, kOnDivergence);
  v.real("divergence_jump", r.divergence_jump, Need::kOptional, kAtLeastZero);
  v.optional("integrity", r.integrity);
  v.optional("chaos", r.chaos);
}

template <class Visitor>
void fields(Visitor& v, EncoderSpec& e) {
  v.choice("input", e.input, kEncoderInputs);
  v.integer("patch", e.patch, Need::kOptional, {1, 1024});
  v.integer("mel_bins", e.mel_bins, Need::kOptional, {1, 128});
  v.integer("frames", e.frames, Need::kOptional, {1, 1024});
  v.integer("tokens", e.tokens, Need::kRequired, {1, 1 << 16});
  v.integer("items", e.items, Need::kOptional, {1, 1 << 16});
  v.choice("learns", e.learns, kLearnt);
  v.integer("layers", e.layers, Need::kRequired, {1, limits::kLayers});
  v.integer("hidden", e.hidden, Need::kRequired, {1, limits::kHidden});
  v.integer("heads", e.heads, Need::kRequired, {1, limits::kHeads});
  v.integer("ffn", e.ffn, Need::kOptional, {1, limits::kFfn});
}

template <class Visitor>
void fields(Visitor& v, ProgramSpec& p) {
  v.text("name", p.name, Need::kRequired);
  v.choice("does", p.does, kProgramTasks);
  v.integer("first_device", p.first_device, Need::kOptional, {0, (1 << 20) - 1});
  v.integer("devices", p.devices, Need::kOptional, {0, 1 << 20});
  v.strings("inputs", p.inputs);
  v.text("weights", p.weights, Need::kOptional);
  v.optional("parallel", p.parallel);
  v.optional("memory", p.memory);
  v.optional("inference", p.inference);
  v.optional("encoder", p.encoder);
}

template <class Visitor>
void fields(Visitor& v, MediaSpec& m) {
  v.integer("least", m.least, Need::kOptional, {1, 64});
  v.integer("most", m.most, Need::kRequired, {1, 64});
  v.choice("order", m.order, kOrders);
  v.integer("evaluate_every", m.evaluate_every, Need::kOptional, {});
  v.integer("evaluate", m.evaluate, Need::kOptional, {0, 1 << 16});
}

template <class Visitor>
void fields(Visitor& v, ReinforcementSpec& r) {
  v.integer("samples", r.samples, Need::kRequired, {2, 1 << 16});
  v.integer("tokens", r.tokens, Need::kRequired, {1, limits::kSequence});
  v.choice("reward", r.reward, kRewardRules);
  v.integer("staleness", r.staleness, Need::kOptional, {0, 64});
  v.integer("held_back", r.held_back, Need::kOptional, {0, 1'000'000});
  v.integer("evaluate_every", r.evaluate_every, Need::kOptional, {});
  v.integer("evaluate", r.evaluate, Need::kOptional, {1, 1 << 16});
}

template <class Visitor>
void fields(Visitor& v, Job& j) {
  v.text("name", j.name, Need::kOptional);
  v.block("supernode", j.supernode, Need::kRequired);
  v.block("model", j.model, Need::kRequired);
  v.block("parallel", j.parallel, Need::kOptional);
  v.optional("memory", j.memory);
  v.block("data", j.data, Need::kToRun);
  v.block("training", j.training, Need::kRequired);
  v.optional("inference", j.inference);
  v.block("run", j.run, Need::kOptional);
  v.list("programs", j.programs);
  v.optional("reinforcement", j.reinforcement);
  v.optional("media", j.media);
}

}  // namespace hyperrun

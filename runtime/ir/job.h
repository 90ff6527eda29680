// The job as plain values: what the user asked for, defaults filled in. Parsed and validated in
// runtime/spec from proto/job.proto, whose field comments are the reference; nothing below knows
// protobuf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/units.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/rope.h"

namespace hyperrun {

// The machine that a job asks for. Rates and latencies feed the simulator and the compiler's
// choices; the emulated machine runs as fast as the host allows (NATIVE clock). Their defaults are one
// die of an Ascend 910C (data sheet) in float32.
struct SupernodeSpec {
  std::int32_t devices = 1;
  Bytes hbm{};                     // budget of one device
  Bytes pool{};                    // budget of the shared DDR pool, all devices together
  Bytes flash{};                   // budget of the devices' files, all devices together
  double cube_flops = 99.5e12;     // matrix products, flop/s of one device
  double vector_flops = 11e12;     // elementwise work, flop/s of one device
  double hbm_bandwidth = 1.6e12;   // bytes/s of one device
  double link_bandwidth = 196e9;   // bytes/s, one device, one direction
  Nanos link_latency{1000};        // of one message
  Nanos launch_latency{2000};      // of one instruction
  double pool_bandwidth = 25e9;    // bytes/s, one device, one direction
  Nanos pool_latency{10'000};      // of one transfer
  double flash_bandwidth = 3e9;    // bytes/s, one device, one direction
  Nanos flash_latency{100'000};    // of one transfer
  std::string profile;             // the name or file of a machine, in place of the rates
  std::optional<Machine> machine;  // that it stands for

  bool operator==(const SupernodeSpec&) const = default;
};

// Of each `group` tokens that follow one another in a sequence, an expert takes
// ceil(factor x group x choices / count) at most, the first ones.
struct CapacitySpec {
  double factor = 0;       // 0: there is no bound
  std::int32_t group = 0;  // divides the sequence; 0: the whole sequence

  bool operator==(const CapacitySpec&) const = default;
};

// A mixture of experts in place of the SwiGLU of the layers from `dense_layers` on.
struct ExpertsSpec {
  std::int32_t count = 0;    // 0: none
  std::int32_t choices = 2;  // of each token
  std::int32_t ffn = 0;      // width of one expert's SwiGLU
  std::int32_t shared = 0;   // experts that all tokens have, in one SwiGLU of so many times the width
  std::int32_t dense_layers = 0;
  std::string scoring = "softmax";  // or "sigmoid"
  bool normalize = true;            // gates of a token add up to `scale`
  double scale = 1;
  double aux_loss =
      0;  // factor of the load-balancing loss, which is in the gradients and not in the reported loss
  double bias_rate = 0;            // by which the bias of an expert's score moves each step; 0: there is none
  std::int32_t groups = 1;         // of experts that follow one another; a token chooses in the best of them,
  std::int32_t group_choices = 1;  // so many
  CapacitySpec capacity;

  bool operator==(const ExpertsSpec&) const = default;
};

// Attention whose keys and values come from a compressed state (multi-head latent attention).
struct LatentSpec {
  std::int32_t q_rank = 0;     // of the compressed queries; 0: queries are not compressed
  std::int32_t kv_rank = 0;    // of the compressed keys and values; 0: there is no such attention
  std::int32_t nope_dim = 0;   // of a head's queries and keys: what is not turned,
  std::int32_t rope_dim = 0;   // and what is, in keys the same for all heads; even
  std::int32_t value_dim = 0;  // of a head's values

  bool operator==(const LatentSpec&) const = default;
};

// Multi-token prediction: modules behind the layers, each of which predicts one token further.
struct MtpSpec {
  std::int32_t layers = 0;  // modules, of a layer each; 0: none
  double loss_factor =
      0.3;  // of the mean of their losses, which is in the gradients and not in the reported loss

  bool operator==(const MtpSpec&) const = default;
};

struct ModelSpec {
  std::string name = "llama";
  std::int32_t layers = 0;
  std::int32_t hidden = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;  // divides heads
  std::int32_t head_dim = 0;  // even
  std::int32_t ffn = 0;       // SwiGLU width
  std::int32_t vocab = 0;     // the tokenizer is trained to this size
  std::int32_t sequence = 0;  // tokens of one training sample
  double rope_theta = 10000;
  double norm_eps = 1e-5;
  bool tied_head = false;
  ExpertsSpec experts;
  LatentSpec latent;
  MtpSpec mtp;
  std::int32_t positions = 0;  // rows of a table of learned positions; 0: as many as `sequence`
  RopeScaling rope_scaling;
  // Of an encoder, whose `sequence` is the tokens of an item: the width of a vector that it takes for a
  // token, and of what it gives.
  std::int32_t inputs = 0, features = 0;

  bool operator==(const ModelSpec&) const = default;
};

struct MeshAxis {
  std::string name;
  std::int32_t size = 1;

  bool operator==(const MeshAxis&) const = default;
};

// A whole layout by position: for each dimension of a tensor, in order, the axes that split it, major first.
struct PositionalLayout {
  std::vector<MeshAxis> mesh;  // that the user wrote in front, the same as the job's; empty: none was written
  std::vector<std::vector<std::string>> dims;

  bool operator==(const PositionalLayout&) const = default;
};

// One sharding rule: tensors whose name matches `tensor` (a glob, "layers.*.attention.wq") are split
// as stated: for each listed dimension of the tensor, the mesh axes that split it, major first; no axes:
// it is whole. Dimensions that are not listed stay as earlier rules left them.
struct ShardRule {
  struct Dim {
    std::string dim;
    std::vector<std::string> axes;
    bool operator==(const Dim&) const = default;
  };
  std::string tensor;
  std::vector<Dim> dims;
  std::string origin;  // "preset dp" or "job.textproto:12:3", for messages
  // Of weights and their gradients: how they are kept, not how products take them. A weight that is kept in
  // more parts than it is used in is gathered before each use (ZeRO-3), a gradient scattered after each
  // micro-batch (ZeRO-2).
  bool stored = false;
  std::optional<PositionalLayout>
      layout;  // instead of `dims`: replaces what earlier rules said of all dimensions

  bool operator==(const ShardRule&) const = default;
};

// The layers cut into stages, which lie on the devices along one mesh axis. What lies before the layers (the
// embedding) belongs to the first stage, what lies behind them (the head) to the last.
struct PipelineSpec {
  struct Stage {
    std::int32_t device = 0;  // coordinate on the axis
    std::int32_t layers = 0;
    bool operator==(const Stage&) const = default;
  };
  std::string axis;  // "": no pipeline
  std::string schedule =
      "1f1b";  // "gpipe", "1f1b", "interleaved" (1f1b, of several stages a device) or "zero_bubble"
  std::int32_t chunks = 1;    // the most stages on one device
  std::vector<Stage> stages;  // in the order of the forward pass; a device may have several

  bool operator==(const PipelineSpec&) const = default;
};

inline constexpr std::string_view kFloat32 = "float32", kBfloat16 = "bfloat16";

struct ParallelSpec {
  std::vector<MeshAxis> mesh;        // major (slowest changing rank) first; product = devices
  std::vector<std::string> presets;  // as written: "dp", "tp", "sp", "zero1"
  std::vector<ShardRule> rules;      // of the user; they override a preset's
  PipelineSpec pipeline;
  std::string gradients{kFloat32};  // what those of weights are sent in, once a step
  std::int32_t tiles = 1;           // that rows are cut into which devices exchange; 0: the compiler decides
  bool paired_passes = false;       // a backward pass beside the forward pass of a later micro-batch

  bool operator==(const ParallelSpec&) const = default;
};

// What may lie beyond HBM, and who decides when it moves (runtime/offload/policy.h).
struct MemorySpec {
  std::string policy{"none"};
  std::string tier{"pool"};          // or "flash"
  std::vector<std::string> tensors;  // categories that may move; empty: all

  bool operator==(const MemorySpec&) const = default;
};

struct DataSpec {
  std::string corpus;     // path of a text file; empty where there are tasks
  std::string tokenizer;  // path of a tokenizer.json; empty: train one on the corpus
  std::string tasks;      // path of prompts and answers, to learn by reinforcement
  std::string samples;    // path of a manifest of pictures, sounds and texts (docs/omni_data.md)

  bool operator==(const DataSpec&) const = default;
};

// What the backward pass of some layers computes again instead of keeping it: "none", "selective" or "full".
struct RecomputeSpec {
  std::string policy = "full";
  std::int32_t first_layer = 0, last_layer = 0;  // both included

  bool operator==(const RecomputeSpec&) const = default;
};

// Of a policy that is trained on what it has written (docs/policy.md), in place of the cross entropy of a
// text.
struct PolicySpec {
  double clip = 0;         // how far a token's ratio may leave 1 before it counts no more; 0: none is trained
  double kl = 0;           // factor of the divergence from the reference
  double temperature = 1;  // by which logits are divided

  bool trains() const { return clip > 0; }
  bool operator==(const PolicySpec&) const = default;
};

struct TrainingSpec {
  std::int32_t steps = 0;
  std::int32_t batch = 0;          // sequences of a step, all devices together
  std::int32_t micro_batches = 1;  // the batch is cut into these, gradients accumulate
  double lr = 0;
  double min_lr = 0;  // at the end of the cosine
  std::int32_t warmup_steps = 0;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;  // of matrices; vectors have none
  double clip_norm = 1.0;     // of the global gradient norm; 0: no clipping
  double init_std = 0.02;
  std::string precision{kFloat32};       // of activations and of what products take
  std::vector<RecomputeSpec> recompute;  // of several for one layer the last holds
  PolicySpec policy;

  bool operator==(const TrainingSpec&) const = default;
};

struct GenerateSpec {
  std::string prompt;
  std::int32_t tokens = 0;  // 0: no text is generated at the end
  double temperature = 0;   // 0: greedy
  std::int32_t top_k = 0;   // 0: all
  double top_p = 1;         // of the likeliest tokens that have so much probability together

  bool operator==(const GenerateSpec&) const = default;
};

// How sequences are generated: how many at once, and what of them is kept. 0: see docs/job.md.
struct InferenceSpec {
  std::int32_t slots = 0;    // sequences that grow at once, all devices together
  std::int32_t context = 0;  // positions of a sequence, at most
  std::int32_t chunk = 0;    // tokens of a prompt that a pass takes
  std::int32_t page = 16;    // positions of a page of the cache
  std::int32_t pages = 0;    // all devices together
  std::int32_t prompts = 0;  // of which a pass takes a chunk, all devices together

  bool operator==(const InferenceSpec&) const = default;
};

// By what a model is divided that is executed to scale: see shrink.h. 1: as it is.
struct ShrinkSpec {
  std::int32_t depth = 1;     // layers; those that are left last as long as in the original
  std::int32_t width = 1;     // hidden, head_dim, ffn and what is like them
  std::int32_t sequence = 1;  // tokens of a sample
  std::int32_t vocab = 1;
  std::int32_t batch = 1;  // sequences

  bool operator==(const ShrinkSpec&) const = default;
};

inline constexpr std::string_view kNative = "native", kPaced = "paced";

enum class StreamThreads : std::uint8_t { kAuto, kOne, kPerStream };

struct RunSpec {
  std::string directory = "runs/{job}";  // run directory; "{job}" and "{time}" are filled in
  std::uint64_t seed = 1;
  std::int32_t checkpoint_every = 0;  // steps; 0: only at the end
  std::string resume;                 // a checkpoint to start from, or "" for none
  std::int32_t trace_first = 0;       // first step in the trace
  std::int32_t trace_steps = 0;       // steps in the trace, 0: none
  StreamThreads streams = StreamThreads::kAuto;
  double heartbeat_seconds = 2.0;  // a device silent for longer is hung
  std::string clock{kNative};      // or kPaced
  double dilation = 0;             // of the paced clock; 0: chosen so that the real work fits
  ShrinkSpec shrink;               // of the paced clock
  GenerateSpec generate;

  bool operator==(const RunSpec&) const = default;
};

// What one of several programs does.
inline constexpr std::string_view kGenerates = "generate", kRewards = "reward", kScores = "score",
                                  kTrains = "train", kEncodes = "encode";

inline constexpr std::string_view kImage = "image", kAudio = "audio";

// Of a program that encodes: what it reads, and its model.
struct EncoderSpec {
  std::string input;           // kImage or kAudio; empty: the program does something else
  std::int32_t patch = 16;     // pixels along each side
  std::int32_t mel_bins = 80;  // values of a frame,
  std::int32_t frames = 4;     // so many of which make a vector
  std::int32_t tokens = 0;     // vectors of an item
  std::int32_t items = 8;      // of a pass of a replica
  std::string learns{"text"};  // or "category": what stands behind the features
  std::int32_t layers = 0, hidden = 0, heads = 0, ffn = 0;

  // Values of an input vector.
  std::int32_t inputs() const { return input == kImage ? 3 * patch * patch : frames * mel_bins; }
  bool operator==(const EncoderSpec&) const = default;
};

// One of several programs that run side by side.
struct ProgramSpec {
  std::string name, does;
  std::int32_t first_device = 0, devices = 0;  // its devices follow one another; "reward" has none
  std::vector<std::string> inputs;             // programs whose outputs it takes
  std::string weights;                         // the program whose weights it has; empty: its own
  ParallelSpec parallel;
  MemorySpec memory;
  InferenceSpec inference;
  EncoderSpec encoder;

  bool operator==(const ProgramSpec&) const = default;
};

inline constexpr std::string_view kStaticOrder = "static", kDynamicOrder = "dynamic";

// Learning from pictures, sounds and texts.
struct MediaSpec {
  std::int32_t least = 1, most = 0;  // samples of an example; 0: the job does not learn so
  std::string order{kDynamicOrder};
  std::int32_t evaluate_every = 0;  // steps; 0: only after the last
  std::int32_t evaluate = 64;       // samples of an evaluation, of each encoder, at most

  bool learns() const { return most > 0; }
  bool operator==(const MediaSpec&) const = default;
};

// Learning from rewards of what was generated.
struct ReinforcementSpec {
  std::int32_t samples = 0;  // completions of each prompt; 0: the job does not learn so
  std::int32_t tokens = 0;   // of a completion, at most
  std::string reward = "answer";
  std::int32_t staleness = 0;   // steps by which the weights that generate may be older than those that learn
  std::int32_t held_back = 10;  // one of so many tasks is never trained on; 0: none
  std::int32_t evaluate_every = 0;  // steps; 0: only before the first and after the last
  std::int32_t evaluate = 64;       // tasks of an evaluation, at most

  bool operator==(const ReinforcementSpec&) const = default;
};

struct Job {
  std::string name;
  SupernodeSpec supernode;
  ModelSpec model;
  ParallelSpec parallel;
  MemorySpec memory;
  DataSpec data;
  TrainingSpec training;
  InferenceSpec inference;
  RunSpec run;
  std::vector<ProgramSpec> programs;  // none: the job is one training, or one generation
  ReinforcementSpec reinforcement;
  MediaSpec media;

  bool operator==(const Job&) const = default;
};

}  // namespace hyperrun

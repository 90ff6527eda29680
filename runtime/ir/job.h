// The job as plain values: what the user asked for, with defaults filled in. runtime/spec reads and checks
// it; the comments in proto/job.proto are the reference of the fields. No room below runtime/spec knows
// protobuf.
#pragma once

#include <algorithm>
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

// The machine that a job asks for. The simulator and the compiler use its rates and latencies; with the
// native clock the emulated machine runs as fast as the host allows. The default rates are those of one die
// of an Ascend 910C (data sheet) in float32.
struct SupernodeSpec {
  std::int32_t devices = 1;
  std::int32_t spares = 0;         // further devices, which take the places of lost ones
  Bytes hbm{};                     // budget of one device
  Bytes pool{};                    // budget of the shared DDR pool, for all devices together
  Bytes flash{};                   // budget of the devices' files, for all devices together
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
  std::string profile;             // the name or file of a profile, in place of the rates
  std::string software;            // the name or file of a software profile; empty: none
  std::optional<Machine> machine;  // the machine that `profile` names, with the software

  bool operator==(const SupernodeSpec&) const = default;
};

// The capacity of experts: of each `group` consecutive tokens of a sequence, an expert takes at most the
// first ceil(factor x group x choices / count).
struct CapacitySpec {
  double factor = 0;       // 0: there is no bound
  std::int32_t group = 0;  // divides the sequence; 0: the whole sequence
  bool drop = true;        // false: other choices are kept, while the device's rows have room

  bool operator==(const CapacitySpec&) const = default;
};

// Layers from the first to the last, both included: each, or one of `every`.
struct LayerRange {
  std::int32_t first_layer = 0, last_layer = 0, every = 1;

  bool has(std::int32_t layer) const {
    return layer >= first_layer && layer <= last_layer && (layer - first_layer) % every == 0;
  }
  bool operator==(const LayerRange&) const = default;
};

inline bool any_has(const std::vector<LayerRange>& ranges, std::int32_t layer) {
  return std::ranges::any_of(ranges, [&](const LayerRange& r) { return r.has(layer); });
}

// A mixture of experts in place of the SwiGLU of the layers from `dense_layers` on, but those of `dense`.
struct ExpertsSpec {
  std::int32_t count = 0;    // 0: none
  std::int32_t choices = 2;  // experts that each token chooses
  std::int32_t ffn = 0;      // width of one expert's SwiGLU
  std::int32_t shared = 0;   // experts that all tokens use; one SwiGLU of `shared` times the width
  std::int32_t dense_layers = 0;
  std::string scoring = "softmax";  // or "sigmoid"
  bool normalize = true;            // gates of a token add up to `scale`
  double scale = 1;
  // Factor of the load-balancing loss. It is part of the gradients, not of the reported loss.
  double aux_loss = 0;
  double bias_rate = 0;            // change of an expert's score bias in each step; 0: there is no bias
  std::int32_t groups = 1;         // groups of consecutive experts
  std::int32_t group_choices = 1;  // groups that a token chooses its experts from, the best ones
  CapacitySpec capacity;
  std::int32_t group_best = 2;    // scores of a group, the best ones, whose sum ranks it: 1 or 2
  std::vector<LayerRange> dense;  // further layers without experts

  bool in_layer(std::int32_t layer) const {
    return count > 0 && layer >= dense_layers && !any_has(dense, layer);
  }
  bool operator==(const ExpertsSpec&) const = default;
};

// Attention whose keys and values come from a compressed state (multi-head latent attention).
struct LatentSpec {
  std::int32_t q_rank = 0;     // width of the compressed queries; 0: queries are not compressed
  std::int32_t kv_rank = 0;    // width of the compressed keys and values; 0: no latent attention
  std::int32_t nope_dim = 0;   // part of a head's queries and keys without rotary positions
  std::int32_t rope_dim = 0;   // part with rotary positions, even; all heads share this part of the keys
  std::int32_t value_dim = 0;  // width of a head's values

  bool operator==(const LatentSpec&) const = default;
};

// Multi-token prediction: modules behind the layers, each of which predicts one token further ahead.
struct MtpSpec {
  std::int32_t layers = 0;  // modules, each of one layer; 0: none
  // Factor of the mean of the modules' losses. It is part of the gradients, not of the reported loss.
  double loss_factor = 0.3;

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
  std::int32_t positions = 0;  // rows of the table of learned positions; 0: `sequence` rows
  RopeScaling rope_scaling;
  // For encoders only; their `sequence` is the number of tokens of an item.
  std::int32_t inputs = 0;    // width of a token's input vector
  std::int32_t features = 0;  // width of a token's output vector
  std::string from;           // the config.json of the fields that the job leaves out; empty once it is read
  bool attention_bias = false;            // on queries, keys, values and the output of attention
  bool mlp_bias = false;                  // on the three products of a SwiGLU
  std::int32_t window = 0;                // positions that a token sees, with its own; 0: all before it
  std::vector<LayerRange> window_layers;  // the layers with the window; empty: all
  std::int32_t rotary_dim = 0;  // elements of a head that turn, the first ones; 0: all (or latent.rope_dim)

  // The window of a layer; 0: none.
  std::int32_t window_of(std::int32_t layer) const {
    return window_layers.empty() || any_has(window_layers, layer) ? window : 0;
  }
  bool operator==(const ModelSpec&) const = default;
};

struct MeshAxis {
  std::string name;
  std::int32_t size = 1;

  bool operator==(const MeshAxis&) const = default;
};

// A whole layout by position: for each dimension of a tensor, in order, the axes that split it, major first.
struct PositionalLayout {
  std::vector<MeshAxis> mesh;  // the mesh if the user wrote it in front, equal to the job's; else empty
  std::vector<std::vector<std::string>> dims;

  bool operator==(const PositionalLayout&) const = default;
};

// One sharding rule, for tensors whose name matches `tensor` (a glob, "layers.*.attention.wq"). It gives each
// listed dimension the mesh axes that split it, major first; without axes the dimension is whole. Earlier
// rules decide about dimensions that are not listed.
struct ShardRule {
  struct Dim {
    std::string dim;
    std::vector<std::string> axes;
    bool operator==(const Dim&) const = default;
  };
  std::string tensor;
  std::vector<Dim> dims;
  std::string origin;  // "preset dp" or "job.textproto:12:3", for messages
  // The rule is for the storage of weights and gradients, not for the products that use them. A weight stored
  // in more parts than its products need is gathered before each use (ZeRO-3). A gradient stored so is
  // scattered after each micro-batch (ZeRO-2).
  bool stored = false;
  // If set, it is used instead of `dims` and replaces earlier rules about all dimensions.
  std::optional<PositionalLayout> layout;

  bool operator==(const ShardRule&) const = default;
};

// The pipeline: layers are cut into stages on the devices along one mesh axis. The embedding belongs to the
// first stage, the head to the last.
struct PipelineSpec {
  struct Stage {
    std::int32_t device = 0;  // coordinate on the axis
    std::int32_t layers = 0;
    bool operator==(const Stage&) const = default;
  };
  std::string axis;  // "": no pipeline
  // One of "gpipe", "1f1b", "interleaved" (1f1b with several stages on each device) and "zero_bubble".
  std::string schedule = "1f1b";
  std::int32_t chunks = 1;    // the most stages on one device
  std::vector<Stage> stages;  // in the order of the forward pass; a device may have several

  bool operator==(const PipelineSpec&) const = default;
};

inline constexpr std::string_view kFloat32 = "float32", kBfloat16 = "bfloat16";

struct ParallelSpec {
  std::vector<MeshAxis> mesh;        // major (slowest changing rank) first; product = devices
  std::vector<std::string> presets;  // as written: "dp", "tp", "sp", "zero1"
  std::vector<ShardRule> rules;      // the user's; they override rules of presets
  PipelineSpec pipeline;
  std::string gradients{kFloat32};  // data type in which gradients of weights are exchanged, once a step
  std::int32_t tiles = 1;           // tiles into which the rows of exchanges are cut; 0: the compiler decides
  bool paired_passes = false;       // a backward pass runs beside the forward pass of a later micro-batch

  bool operator==(const ParallelSpec&) const = default;
};

// Offloading: which tensors may leave HBM, for which tier, and the policy that decides when
// (runtime/offload/policy.h).
struct MemorySpec {
  std::string policy{"none"};
  std::string tier{"pool"};          // or "flash"
  std::vector<std::string> tensors;  // categories that may move; empty: all

  bool operator==(const MemorySpec&) const = default;
};

struct DataSpec {
  std::string corpus;     // path of a text file; empty if there are tasks
  std::string tokenizer;  // path of a tokenizer.json; empty: train one on the corpus
  std::string tasks;      // path of prompts and answers, for reinforcement learning
  std::string samples;    // path of a manifest of pictures, sounds and texts (docs/omni_data.md)

  bool operator==(const DataSpec&) const = default;
};

// Recomputation in a range of layers: how much the backward pass computes again, "none", "selective" or
// "full".
struct RecomputeSpec {
  std::string policy = "full";
  std::int32_t first_layer = 0, last_layer = 0;  // both included

  bool operator==(const RecomputeSpec&) const = default;
};

// The loss of a policy that is trained on its own completions (docs/policy.md), in place of cross entropy.
struct PolicySpec {
  double clip = 0;  // largest distance of a token's ratio from 1 that still has a gradient; 0: no policy
  double kl = 0;    // factor of the divergence from the reference
  double temperature = 1;  // divides the logits

  bool trains() const { return clip > 0; }
  bool operator==(const PolicySpec&) const = default;
};

struct TrainingSpec {
  std::int32_t steps = 0;
  std::int32_t batch = 0;          // sequences of a step, of all devices together
  std::int32_t micro_batches = 1;  // parts of the batch; their gradients accumulate
  double lr = 0;
  double min_lr = 0;  // learning rate at the end of the cosine
  std::int32_t warmup_steps = 0;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;  // for matrices only, not for vectors
  double clip_norm = 1.0;     // largest global norm of the gradient; 0: no clipping
  double init_std = 0.02;
  std::string precision{kFloat32};       // data type of activations and of the operands of products
  std::vector<RecomputeSpec> recompute;  // the last that names a layer holds for it
  PolicySpec policy;

  bool operator==(const TrainingSpec&) const = default;
};

struct GenerateSpec {
  std::string prompt;
  std::int32_t tokens = 0;  // 0: no text is generated at the end
  double temperature = 0;   // 0: greedy
  std::int32_t top_k = 0;   // 0: all
  double top_p = 1;         // tokens are drawn from the likeliest ones whose probabilities add up to this

  bool operator==(const GenerateSpec&) const = default;
};

// The shape of a generation. docs/job.md says what 0 means.
struct InferenceSpec {
  std::int32_t slots = 0;    // sequences that grow at once, on all devices together
  std::int32_t context = 0;  // most positions of a sequence
  std::int32_t chunk = 0;    // tokens of a prompt that one prefill takes
  std::int32_t page = 16;    // positions of a page of the cache
  std::int32_t pages = 0;    // pages of all devices together
  std::int32_t prompts = 0;  // prompts of one prefill, on all devices together

  bool operator==(const InferenceSpec&) const = default;
};

// Divisors of the sizes of a model that is executed to scale (shrink.h). 1: unchanged.
struct ShrinkSpec {
  std::int32_t depth = 1;     // layers; each remaining layer takes as long as in the original
  std::int32_t width = 1;     // hidden, head_dim, ffn and other widths
  std::int32_t sequence = 1;  // tokens of a sample
  std::int32_t vocab = 1;
  std::int32_t batch = 1;  // sequences

  bool operator==(const ShrinkSpec&) const = default;
};

inline constexpr std::string_view kNative = "native", kPaced = "paced";

enum class StreamThreads : std::uint8_t { kAuto, kOne, kPerStream };

// The answers to a loss or a gradient norm that is not finite, or to a loss that jumps.
inline constexpr std::string_view kStop = "stop", kSkip = "skip";

// Checks that find silent corruption (docs/faults.md).
struct IntegritySpec {
  std::int32_t every = 0;  // steps between comparisons of state that several devices hold; 0: none
  bool checksums = false;  // of what collectives move

  bool operator==(const IntegritySpec&) const = default;
};

// The kinds of faults that `chaos` injects.
inline constexpr std::string_view kKillFault = "kill", kStopFault = "stop", kSlowFault = "slow",
                                  kCutFault = "cut", kFullDiskFault = "full_disk", kFlipFault = "flip";

// One fault, on the device's process. It happens once in a run, however often its step is repeated.
struct FaultSpec {
  std::string kind{kKillFault};
  std::int32_t device = 0;
  std::int32_t step = 0;  // the step in which it happens, from 1; 0: while the devices start
  bool saving = false;    // true: while the checkpoint after that step is saved
  double seconds = 1;     // of a slow device: so much longer
  bool for_good = false;  // of a killed device: it does not come back
  std::int32_t back = 0;  // a device that was gone for good is back after this step; 0: never
  std::int64_t at = 0;    // of one drawn from a model: when it happens, Unix time, ns; 0: at once

  bool operator==(const FaultSpec&) const = default;
};

struct ChaosSpec {
  std::uint64_t seed = 1;          // of the random faults
  std::int32_t faults = 0;         // so many at random, spread over the run
  std::vector<std::string> kinds;  // of the random ones; empty: kill, stop, slow and cut
  std::vector<FaultSpec> certain;  // besides these
  std::string model;               // file of faults that are drawn by time; empty: none

  bool operator==(const ChaosSpec&) const = default;
};

struct RunSpec {
  std::string directory = "runs/{job}";  // run directory; "{job}" and "{time}" are filled in
  std::uint64_t seed = 1;
  std::int32_t checkpoint_every = 0;  // steps; 0: only at the end
  std::string resume;                 // a checkpoint to start from, or "" for none
  std::int32_t trace_first = 0;       // first step in the trace
  std::int32_t trace_steps = 0;       // steps in the trace, 0: none
  StreamThreads streams = StreamThreads::kAuto;
  double heartbeat_seconds = 2.0;  // a device that is silent for longer counts as hung
  std::string clock{kNative};      // or kPaced
  double dilation = 0;             // paced clock: real over simulated time; 0: chosen so that the work fits
  ShrinkSpec shrink;               // paced clock only
  GenerateSpec generate;
  std::int32_t restarts = 3;    // starts after a loss, in a row without a new checkpoint
  bool elastic = true;          // devices that are gone for good: go on with the best layout of the others
  std::int32_t keep_last = 0;   // checkpoints that stay; 0: all
  std::int32_t keep_every = 0;  // with keep_last: those after a multiple of so many steps stay, too; 0: none
  std::int32_t copy_every = 0;  // steps between copies of the state in memory; 0: none
  std::string on_divergence{kStop};
  double divergence_jump =
      0;  // a loss of so many times the mean of the last 16 diverges; 0: any finite is fine
  IntegritySpec integrity;
  ChaosSpec chaos;

  bool operator==(const RunSpec&) const = default;
};

// The kinds of work of a job's programs (ProgramSpec::does).
inline constexpr std::string_view kGenerates = "generate", kRewards = "reward", kScores = "score",
                                  kTrains = "train", kEncodes = "encode";

inline constexpr std::string_view kImage = "image", kAudio = "audio";

// The input and the model of a program that encodes.
struct EncoderSpec {
  std::string input;           // kImage or kAudio; empty: the program is no encoder
  std::int32_t patch = 16;     // pixels along each side of a patch
  std::int32_t mel_bins = 80;  // values of a frame
  std::int32_t frames = 4;     // frames of a vector
  std::int32_t tokens = 0;     // vectors of an item
  std::int32_t items = 8;      // items in a pass of one replica
  std::string learns{"text"};  // what the job predicts from the features: "text" or "category"
  std::int32_t layers = 0, hidden = 0, heads = 0, ffn = 0;

  // The number of values of an input vector.
  std::int32_t inputs() const { return input == kImage ? 3 * patch * patch : frames * mel_bins; }
  bool operator==(const EncoderSpec&) const = default;
};

// One of several programs that run side by side.
struct ProgramSpec {
  std::string name, does;
  std::int32_t first_device = 0, devices = 0;  // consecutive devices; a "reward" has none
  std::vector<std::string> inputs;             // programs whose outputs this one takes
  std::string weights;                         // the program whose weights this one copies; empty: its own
  ParallelSpec parallel;
  MemorySpec memory;
  InferenceSpec inference;
  EncoderSpec encoder;

  bool operator==(const ProgramSpec&) const = default;
};

inline constexpr std::string_view kStaticOrder = "static", kDynamicOrder = "dynamic";

// Learning from pictures, sounds and texts.
struct MediaSpec {
  std::int32_t least = 1, most = 0;  // range of samples in an example; most = 0: the job has no media
  std::string order{kDynamicOrder};
  std::int32_t evaluate_every = 0;  // steps; 0: only after the last
  std::int32_t evaluate = 64;       // most samples of each encoder in an evaluation

  bool learns() const { return most > 0; }
  bool operator==(const MediaSpec&) const = default;
};

// Learning from rewards for completions.
struct ReinforcementSpec {
  std::int32_t samples = 0;  // completions of each prompt; 0: no reinforcement learning
  std::int32_t tokens = 0;   // most tokens of a completion
  std::string reward = "answer";
  std::int32_t staleness = 0;       // steps by which the generating weights may lag behind the trained ones
  std::int32_t held_back = 10;      // one in this many tasks is never trained on; 0: none
  std::int32_t evaluate_every = 0;  // steps; 0: only before the first and after the last
  std::int32_t evaluate = 64;       // most tasks of an evaluation

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
  std::vector<ProgramSpec> programs;  // empty: the job is one training or one generation
  ReinforcementSpec reinforcement;
  MediaSpec media;

  bool operator==(const Job&) const = default;
};

}  // namespace hyperrun

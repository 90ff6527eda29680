// The logical computation: tensors with named dimensions, and operators over them. It is built for one
// (global) device. The shard pass adds layouts and the collectives between them; nothing else changes.
//
// Glossary
//   dim       a named dimension of the model ("batch", "kv_heads"), with its size; a tensor lists dims
//   phase     when a node runs: once at load (kInit), once a step before the first micro-batch (kBegin), for
//             each micro-batch (kForward, kBackward), or once a step after the last one (kUpdate)
//   state     a tensor that lives as long as the job (weights, optimizer); a node that updates it
//             yields a new value bound to the same storage (Tensor::updates)
//   accumulated  a tensor that is a sum over the micro-batches of a step (gradients, the loss)
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/units.h"
#include "runtime/ir/layout.h"
#include "runtime/ir/rope.h"

namespace hyperrun {

using DimId = Id<struct DimTag>;
using TensorId = Id<struct TensorTag>;
using NodeId = Id<struct NodeTag>;

struct Dim {
  std::string name;
  std::int64_t size = 0;
  std::int64_t ring = 1;  // devices of the ring in whose zigzag order (zigzag.h) tensors keep this dimension;
                          // set by the shard pass
  bool pads = false;      // the shard pass may lengthen it, so that the axes that split it divide it
  std::int64_t padding = 0;  // elements at its end that stand for nothing; set by the shard pass
  bool operator==(const Dim&) const = default;
};

// The use of a tensor. It decides the lifetime, the memory category and which rules may name the tensor.
enum class TensorClass : std::uint8_t {
  kWeight,       // state, saved in checkpoints
  kOptimizer,    // state, saved in checkpoints
  kConstant,     // state, computed at load (RoPE tables)
  kGradient,     // a weight's gradient, accumulated over micro-batches
  kAccumulator,  // a statistic (the loss), accumulated over micro-batches
  kActivation,   // everything else
  kExchanged,    // an activation in another layout, made by a redistribution
  kCopy,         // a weight in the data type of products; made at the beginning of a step
  kData,         // tokens
  kCache,        // state of a generation: keys and values of the sequences' earlier positions
  kPort,         // state: tensors that one submodel hands to another (runtime/compose/submodel.h)
};

// The place of a tensor in a checkpoint. It is one of
//   - a whole tensor called `name`;
//   - `slices` tensors, each a slice along the first dimension;
//   - a part of a tensor that holds parts of other tensors too;
//   - without padding: the first rows of ours, as many as `shape` has.
// With slices and a part, each slice is such a part.
struct SavedAs {
  std::string name;                 // with slices, "*" stands for the number of the slice; empty: not saved
  std::vector<std::int64_t> shape;  // shape of the checkpoint's tensor; empty: same as ours
  std::int64_t slices = 1;
  // A part: the checkpoint's tensor has rows of `of` elements; ours are the same number of each row, from
  // element `from` on. of = 0: the checkpoint's tensor is all ours.
  std::int64_t from = 0, of = 0;
  bool operator==(const SavedAs&) const = default;
};

struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<DimId> dims;  // row-major, first is slowest
  TensorClass cls = TensorClass::kActivation;
  TensorId updates;  // a state whose storage this value overwrites at the end of the node
  SavedAs saved;     // for state: the place in a checkpoint
  // Set only on rows of experts, [experts, batch, seq, ...]. Of all pairs (expert, token) only those exist
  // that the routing chose: `choices` experts for each token, sorted by expert. `counts` is the tensor with
  // the number of rows of each expert.
  TensorId counts;
  std::int32_t choices = 0;
  // Set only where experts have a capacity: memory holds `capacity` rows of an expert for each `group`
  // consecutive tokens of a sequence. 0: all that can come.
  std::int32_t capacity = 0, group = 0;
  // Set only on count tensors, [experts, batch, seq]: how many int32 vectors [experts of a device] it holds.
  // It is 1 after dispatch, and one for each source device after the exchange.
  std::int32_t vectors = 0;
  bool operator==(const Tensor&) const = default;
};

namespace op {

// A table: one line for each operator where it fits.
// clang-format off

// --- operators of the model ---------------------------------------------------------------------
struct LoadBatch { bool operator==(const LoadBatch&) const = default; };   // -> ids, targets [, targets one further on, ...]
struct LoadRequests { bool operator==(const LoadRequests&) const = default; };  // -> ids, requests of a generation's pass (requests.h)
// `features`: the number of feature outputs; they come last.
struct LoadSamples { std::int32_t features = 0; bool operator==(const LoadSamples&) const = default; };  // -> ids, targets [, weight [, advantage, behaviour, reference]] [, rows of features ...]: samples.h
struct LoadVectors { bool operator==(const LoadVectors&) const = default; };  // -> vectors [items, tokens, width]: input_vectors.h
// Both access the slot of a port [slots, ...] that the invocation names.
struct LoadPort { bool operator==(const LoadPort&) const = default; };    // port -> x
struct StorePort { bool operator==(const StorePort&) const = default; };  // x, port -> port
// The sum over the dims that both inputs have and the output has not. Each dim of the output comes from
// exactly one input (no batched products), the first ones from the first input.
struct Matmul { bool operator==(const Matmul&) const = default; };
struct Positions { bool operator==(const Positions&) const = default; };          // ids [, requests] -> each id's position in the text
// The rows of a table are all its dimensions but the last. An id of -1 gives a row of zeros.
struct Embedding { bool operator==(const Embedding&) const = default; };          // ids, table -> rows
struct EmbeddingGrad { bool operator==(const EmbeddingGrad&) const = default; };  // ids, drows -> dtable
// A norm has two parts, because its rows may be split over devices: sums over the row, which devices add up,
// and the elementwise rest. The root mean square norm is not `centered`. The layer norm is: it subtracts the
// row's mean and has a bias.
struct RowSums { bool operator==(const RowSums&) const = default; };          // x -> sum of x over the last dim
struct RowSquares { bool centered = false; bool operator==(const RowSquares&) const = default; };           // x [, sums] -> sum of x^2
struct Norm { double eps = 0; bool centered = false; bool operator==(const Norm&) const = default; };       // x, w, squares [, sums, bias] -> y
struct NormDots { bool centered = false; bool operator==(const NormDots&) const = default; };  // dy, x, w [, sums] -> sum of dy x w [, sum of dy w]
struct NormGrad { double eps = 0; bool centered = false; bool operator==(const NormGrad&) const = default; };  // dy, x, w, squares, dots [, sums, sums of dy w] [, addend] -> dx, dw
// `longest`: the length of the longest text, on which some scalings depend.
struct RopeTable { double theta = 0; RopeScaling scaling; std::int64_t longest = 0; bool operator==(const RopeTable&) const = default; };    // [positions] -> [seq, head_dim], with positions one table for each sequence
// Rotates pairs among the last elements of x's last dimension (`first`: the first ones), as many elements as the
// table is wide. A pair is two neighbours, or one element of each half.
struct Rope { bool inverse = false, neighbours = false, first = false; bool operator==(const Rope&) const = default; };  // x, table -> y
// Concatenates along the last dimension. b may lack dimensions of a just before it; it is then repeated.
struct Join { bool operator==(const Join&) const = default; };          // a, b -> a followed by b
struct JoinGrad { bool operator==(const JoinGrad&) const = default; };  // d -> da, db
// `causal`: a query sees the keys up to its own position. Otherwise it sees its whole sequence, as in an
// encoder. With a `window` it sees only so many of these keys, the last ones. `scale`: the factor of the scores;
// 0: 1 / sqrt(head_dim).
struct Attention { bool causal = true; std::int64_t window = 0; double scale = 0; bool operator==(const Attention&) const = default; };          // q, k, v -> o, lse
// Causal attention with a cache: queries against the keys and values in pages, [batch, pages, page, kv_heads, ...],
// and those of this pass, which it adds to the pages. `context`: the most positions of a sequence. If pages are in
// parts, [batch, pages, part, page, ...], the results of each part stay apart: o gets a first dimension `part`, and
// lse is an output too.
struct CachedAttention { std::int64_t context = 0, window = 0; double scale = 0; bool operator==(const CachedAttention&) const = default; };  // q, k, v, requests, keys, values -> o, keys, values [, lse]
struct MergeParts { bool operator==(const MergeParts&) const = default; };  // o and lse of each part -> o
struct AttentionGrad { bool causal = true; std::int64_t window = 0; double scale = 0; bool operator==(const AttentionGrad&) const = default; };  // q, k, v, o, lse, do -> dq, dk, dv
// x Phi(x), with Phi approximated by tanh (Hendrycks and Gimpel 2016), like GPT-2.
struct Gelu { bool operator==(const Gelu&) const = default; };          // x -> y
struct GeluGrad { bool operator==(const GeluGrad&) const = default; };  // x, dy -> dx
struct SwiGlu { bool operator==(const SwiGlu&) const = default; };          // gate, up -> h
struct SwiGluGrad { bool operator==(const SwiGluGrad&) const = default; };  // gate, up, dh -> dgate, dup
// Mixture of experts (runtime/device/kernels/experts.h). Rows of experts are a kind of tensor of their own
// (Tensor::counts); Matmul and SwiGlu of such rows take the counts as their last input.
struct Route { std::int32_t choices = 1; bool sigmoid = false, normalize = true; double scale = 1, aux = 0;  // logits [, bias] -> gates, ids, load
               std::int32_t groups = 1, group_choices = 1;  // groups of experts, and how many a token chooses from
               std::int32_t capacity = 0, group = 0;        // see Tensor::capacity
               std::int32_t group_best = 2;                 // scores of a group whose sum ranks it
               bool operator==(const Route&) const = default; };
struct RouteGrad { Route forward; bool operator==(const RouteGrad&) const = default; };    // logits, ids, dgates [, load: with aux] -> dlogits
struct Dispatch { bool operator==(const Dispatch&) const = default; };                     // x, ids -> rows, counts
struct Combine { bool operator==(const Combine&) const = default; };                       // rows, ids [, gates] -> y
struct CombineGrad { bool operator==(const CombineGrad&) const = default; };               // dy, rows, ids, gates -> drows, dgates
struct Balance { double rate = 0; bool operator==(const Balance&) const = default; };      // bias, load -> bias
// b may lack the first dimensions of a; it is then repeated, and its gradient is a sum over them (SumRows).
struct Add { bool operator==(const Add&) const = default; };          // a, b -> a + b
struct SumRows { bool operator==(const SumRows&) const = default; };  // x -> sum over the first dims, those that the output lacks
struct Cast { bool operator==(const Cast&) const = default; };              // x -> x in the output's data type
// Cross entropy whose vocabulary may be split. Each device knows the maximum m' of its own part,
// e = exp(logit - m') and s' = sum e; m is the reduced maximum, s = sum over devices of s' exp(m' - m).
// `scale` multiplies the logits first (1 / temperature).
struct SoftmaxStats { double scale = 1; bool operator==(const SoftmaxStats&) const = default; };  // logits, targets -> e, m', s', target logit
struct RescaleSums { bool operator==(const RescaleSums&) const = default; };    // s', m', m -> s
struct TokenLoss { double scale = 1; bool operator==(const TokenLoss&) const = default; };  // s, m, target logit, targets [, weights] -> loss
// dlogits = scale * weight * (softmax - one at the target); the weight is 1 if there are no weights.
struct CrossEntropyGrad { double scale = 1; bool operator==(const CrossEntropyGrad&) const = default; };  // e, m', m, s, targets [, weights] -> dlogits
// The log probability of each target; 0 where no target is counted.
struct TokenLogProbs { bool operator==(const TokenLogProbs&) const = default; };  // s, m, target logit, targets -> logp
// The clipped loss of a policy and its gradient (runtime/device/kernels/policy.h).
struct PolicyLoss { double clip = 0, kl = 0; bool operator==(const PolicyLoss&) const = default; };  // logp, targets, weight, advantage, behaviour, reference -> sums
struct PolicyGrad { double clip = 0, kl = 0; bool operator==(const PolicyGrad&) const = default; };  // the same -> dlogp
struct Elements { bool operator==(const Elements&) const = default; };  // x[n] -> n scalars
struct SumSquares { bool operator==(const SumSquares&) const = default; };  // any tensors -> one scalar
struct AddScalars { bool operator==(const AddScalars&) const = default; };  // scalars -> scalar
struct ClipFactor { double max_norm = 0; bool operator==(const ClipFactor&) const = default; };  // sumsq -> factor, norm
struct AdamW {  // w, g, m, v [, factor of g] -> w, m, v; the learning rate and the step are scalars of the invocation
  double beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  bool operator==(const AdamW&) const = default;
};
struct InitNormal { double std = 0; bool operator==(const InitNormal&) const = default; };    // -> state
struct InitFill { double value = 0; bool operator==(const InitFill&) const = default; };      // -> state
struct SelectRow { bool operator==(const SelectRow&) const = default; };  // x[batch, seq, ...], requests -> the row of each sequence's last token
struct Sample {  // logits[batch, vocab], requests -> token[batch], logp[batch]
  double temperature = 0;
  std::int32_t top_k = 0;
  double top_p = 1;
  bool operator==(const Sample&) const = default;
};

// --- inserted by the shard pass -----------------------------------------------------------------
struct AllReduce { AxisList axes; Reduction reduction = Reduction::kSum; bool operator==(const AllReduce&) const = default; };
struct ReduceScatter { AxisList axes; int dim = 0; bool operator==(const ReduceScatter&) const = default; };
struct AllGather { AxisList axes; int dim = 0; bool operator==(const AllGather&) const = default; };
struct AllToAll { AxisList axes; int from_dim = 0; int to_dim = 0; bool operator==(const AllToAll&) const = default; };
struct Shift { AxisList axes; bool operator==(const Shift&) const = default; };  // sends to the next device along the axes, receives from the one before
// One step of attention round a ring: a device's queries against the keys and values of the device `step` before
// it along the axes (step 0: its own). Each further step merges its result with that of the steps before.
struct AttentionStep { AxisList axes; int step = 0; bool causal = true; std::int64_t window = 0; double scale = 0; bool operator==(const AttentionStep&) const = default; };  // q, k, v [, o, lse] -> o, lse
struct AttentionStepGrad { AxisList axes; int step = 0; bool causal = true; std::int64_t window = 0; double scale = 0; bool operator==(const AttentionStepGrad&) const = default; };  // q, k, v, o, lse, do [, dq] -> dq, dk, dv of these keys
struct Slice { AxisList axes; int dim = 0; bool operator==(const Slice&) const = default; };
// These move counts and rows of experts along axes, from the devices that have the tokens to those that have the
// experts, or `back`.
struct ExchangeCounts { AxisList axes; bool operator==(const ExchangeCounts&) const = default; };  // counts -> counts of each source
struct SumCounts { bool operator==(const SumCounts&) const = default; };                           // counts of each source -> counts
struct ExchangeRows { AxisList axes; bool back = false; bool operator==(const ExchangeRows&) const = default; };  // rows, counts, counts of each source -> rows
struct Regroup { bool back = false; bool operator==(const Regroup&) const = default; };  // rows by source, counts of each source -> rows by expert
// Messages between the stages of a pipeline, inserted by runtime/compile/partition. The other device has the
// coordinate `peer` on `axis` and else the same coordinates. Send and Recv of one message name the same tensor.
struct Send { AxisId axis = 0; int peer = 0; bool operator==(const Send&) const = default; };  // x ->
struct Recv { AxisId axis = 0; int peer = 0; bool operator==(const Recv&) const = default; };  // -> x
// Adds one micro-batch's part, already redistributed, to a sum over micro-batches: x [, addend] -> sum
struct Accumulate { bool operator==(const Accumulate&) const = default; };

// clang-format on

}  // namespace op

using GraphOpKinds =
    std::variant<op::LoadBatch, op::LoadRequests, op::LoadSamples, op::LoadVectors, op::LoadPort,
                 op::StorePort, op::CachedAttention, op::MergeParts, op::Matmul, op::Positions, op::Embedding,
                 op::EmbeddingGrad, op::RowSums, op::RowSquares, op::Norm, op::NormDots, op::NormGrad,
                 op::RopeTable, op::Rope, op::Join, op::JoinGrad, op::Attention, op::AttentionGrad, op::Gelu,
                 op::GeluGrad, op::SwiGlu, op::SwiGluGrad, op::Add, op::SumRows, op::SoftmaxStats,
                 op::RescaleSums, op::TokenLoss, op::CrossEntropyGrad, op::TokenLogProbs, op::PolicyLoss,
                 op::PolicyGrad, op::Elements, op::SumSquares, op::AddScalars, op::ClipFactor, op::AdamW,
                 op::InitNormal, op::InitFill, op::SelectRow, op::Sample, op::AllReduce, op::ReduceScatter,
                 op::AllGather, op::AllToAll, op::Shift, op::AttentionStep, op::AttentionStepGrad, op::Slice,
                 op::Accumulate, op::Route, op::RouteGrad, op::Dispatch, op::Combine, op::CombineGrad,
                 op::Balance, op::ExchangeCounts, op::SumCounts, op::ExchangeRows, op::Regroup, op::Send,
                 op::Recv, op::Cast>;

// One graph operator. Copies, moves, comparisons and the destructor have a case for each kind, so they are
// compiled once, in graph.cc, and not in every file that copies a node.
struct GraphOp : GraphOpKinds {
  using GraphOpKinds::GraphOpKinds;
  GraphOp();
  GraphOp(const GraphOp&);
  GraphOp(GraphOp&&) noexcept;
  GraphOp& operator=(const GraphOp&);
  GraphOp& operator=(GraphOp&&) noexcept;
  ~GraphOp();
  bool operator==(const GraphOp&) const;
};

std::string_view name(const GraphOp& op);
bool is_collective(const GraphOp& op);

enum class Phase : std::uint8_t { kInit, kBegin, kForward, kBackward, kUpdate };

struct Node {
  std::string name;  // unique: "layers.3.attention.wq", "layers.3.attention.wq.grad"
  GraphOp op;
  std::vector<TensorId> inputs, outputs;
  TensorId addend;  // output 0 is this value plus the operator's result. Only Matmul, EmbeddingGrad, SumRows
                    // and Accumulate may have one.
  Phase phase = Phase::kForward;
  // The model's layer, from 0; -1: before the layers (embedding); number of layers: behind them (head, loss).
  int layer = -1;
  int stage = 0;       // pipeline stage in the order of the forward pass; unused in update and initialisation
  std::string reason;  // for a redistribution: why the shard pass inserted it, in words for users
  bool again = false;  // recomputation: the backward pass computes a value of the forward pass again
  bool operator==(const Node&) const = default;
};

struct Graph {
  std::vector<Dim> dims;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;                                // in a legal order
  std::vector<std::pair<std::string, TensorId>> outputs;  // reported after each invocation

  // Filled by the shard pass, one a tensor; empty before.
  std::vector<Layout> layouts;

  DimId add_dim(std::string name, std::int64_t size);
  TensorId add_tensor(Tensor t);
  // Appends a node; its outputs are created from `outs`.
  std::vector<TensorId> add_node(Node n, std::vector<Tensor> outs);

  const Tensor& operator[](TensorId t) const { return tensors[t.index()]; }
  Tensor& operator[](TensorId t) { return tensors[t.index()]; }
  const Dim& operator[](DimId d) const { return dims[d.index()]; }
  std::vector<std::int64_t> shape(TensorId t) const;  // global
  std::int64_t elements(TensorId t) const;            // global
  bool has_dim(TensorId t, DimId d) const;
  TensorId find(std::string_view tensor_name) const;  // invalid when absent

  bool operator==(const Graph&) const = default;
};

// Elements of `t` that one device holds under `layout`. For rows of experts this is the maximum over all
// routings.
std::int64_t local_elements(const Graph& graph, TensorId t, const Layout& layout, const Mesh& mesh);
// Elements of `t` that one device is expected to hold; differs from local_elements() only for rows of
// experts, where it assumes that all experts are chosen equally often. Never more than local_elements().
// Estimates of time use this number, memory uses local_elements().
std::int64_t expected_elements(const Graph& graph, TensorId t, const Layout& layout, const Mesh& mesh);
// Bytes of a device's part of `t`, in the graph's layout, that are expected to stay unused: the difference of
// local_elements() and expected_elements().
Bytes empty_bytes(const Graph& graph, TensorId t, const Mesh& mesh);

// The state whose storage `t` has: `t` itself, or the state that it updates.
TensorId storage_of(const Graph& graph, TensorId t);
bool is_state(TensorClass cls);
bool is_accumulated(TensorClass cls);

std::string print(const Graph& graph, const Mesh& mesh);
// No use before definition, one definition a tensor, one node a name. Throws kInternal.
void verify(const Graph& graph);

}  // namespace hyperrun

// The logical computation: tensors with named dimensions and operators over them. It is built for one
// (global) device; the shard pass adds layouts and the collectives between them, nothing else changes.
//
// Glossary
//   dim       a named dimension of the model ("batch", "kv_heads"), with its size; a tensor lists dims
//   phase     when a node runs: once at load (kInit), once a step before the first micro-batch (kBegin), for
//             each micro-batch (kForward, kBackward), or once a step after the last one (kUpdate)
//   state     a tensor that lives as long as the job (weights, optimizer); a node that updates it
//             yields a new value bound to the same storage (Tensor::updates)
//   accumulated  a tensor that sums over the micro-batches of a step (gradients, the loss)
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
  std::int64_t ring = 1;  // set by the shard pass: in whose zigzag order (zigzag.h) all tensors keep it
  bool operator==(const Dim&) const = default;
};

// What a tensor is for: decides its lifetime, its memory category and which rules may name it.
enum class TensorClass : std::uint8_t {
  kWeight,       // state, saved in checkpoints
  kOptimizer,    // state, saved in checkpoints
  kConstant,     // state, computed at load (RoPE tables)
  kGradient,     // accumulated over micro-batches, of a weight
  kAccumulator,  // accumulated over micro-batches, a statistic (the loss)
  kActivation,   // everything else
  kExchanged,    // an activation in another layout, made by a redistribution
  kCopy,         // of a weight, in the format that a step computes with; made as it begins
  kData,         // tokens
  kCache,        // state of a generation: keys and values of what sequences hold so far
  kPort,  // state between invocations: what comes to or goes from a sub-model (runtime/compose/submodel.h)
};

// Where a checkpoint has a tensor: whole, under `name`; as slices along its first dimension, each a tensor of
// its own; or as a part of a tensor that others have parts of as well. With both, each slice is such a part.
struct SavedAs {
  std::string name;                 // with slices, "*" stands for the number of the slice; empty: not saved
  std::vector<std::int64_t> shape;  // of a tensor there; empty: the tensor's own
  std::int64_t slices = 1;
  // The tensor there is rows of `of` elements, and ours are as many of each, from `from` on; 0: it is ours
  // alone.
  std::int64_t from = 0, of = 0;
  bool operator==(const SavedAs&) const = default;
};

struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<DimId> dims;  // row-major, first is slowest
  TensorClass cls = TensorClass::kActivation;
  TensorId updates;  // this value replaces that state's storage at the end of the node
  SavedAs saved;     // state: where a checkpoint has it
  // Rows of experts, [experts, batch, seq, ...]: of all (expert, token) only those exist that a routing has
  // chosen, `choices` experts of each token, sorted by expert; `counts` says how many each expert has.
  TensorId counts;
  std::int32_t choices = 0;
  // Where experts have a capacity: of each `group` tokens that follow one another in a sequence, an expert
  // takes `capacity` at most; 0: all.
  std::int32_t capacity = 0, group = 0;
  // Counts themselves, [experts, batch, seq]: `vectors` times a number for each expert of a device, about the
  // tokens that it has dispatched or, after an exchange, been sent; 0: any other tensor.
  std::int32_t vectors = 0;
  bool operator==(const Tensor&) const = default;
};

namespace op {

// One line an operator where it fits, like a table.
// clang-format off

// --- operators of the model ---------------------------------------------------------------------
struct LoadBatch { bool operator==(const LoadBatch&) const = default; };   // -> ids, targets [, targets one further on, ...]
struct LoadRequests { bool operator==(const LoadRequests&) const = default; };  // -> ids, requests: of a pass of generation (requests.h)
// `features`: how many of them there are, which come last.
struct LoadSamples { std::int32_t features = 0; bool operator==(const LoadSamples&) const = default; };  // -> ids, targets [, weight [, advantage, behaviour, reference]] [, rows of features ...]: samples.h
struct LoadVectors { bool operator==(const LoadVectors&) const = default; };  // -> vectors [items, tokens, width]: input_vectors.h
// Of a port [slots, ...] the slot that the invocation names.
struct LoadPort { bool operator==(const LoadPort&) const = default; };    // port -> x
struct StorePort { bool operator==(const StorePort&) const = default; };  // x, port -> port
// Sums over the dims that both inputs have and the output has not. Dims of the output come from
// exactly one input (no batched products), its first ones from the first.
struct Matmul { bool operator==(const Matmul&) const = default; };
struct Positions { bool operator==(const Positions&) const = default; };          // ids [, requests] -> of each its place in the text
// The rows of a table are all its dimensions but the last; an id of -1 has a row of zeros.
struct Embedding { bool operator==(const Embedding&) const = default; };          // ids, table -> rows
struct EmbeddingGrad { bool operator==(const EmbeddingGrad&) const = default; };  // ids, drows -> dtable
// A norm is made of sums over its row, which may be split over devices, and of what each does with the sums.
// That of root mean squares is of x; a centered one, which has a bias, is of x without its row's mean.
struct RowSums { bool operator==(const RowSums&) const = default; };          // x -> sum of x over the last dim
struct RowSquares { bool centered = false; bool operator==(const RowSquares&) const = default; };           // x [, sums] -> sum of x^2
struct Norm { double eps = 0; bool centered = false; bool operator==(const Norm&) const = default; };       // x, w, squares [, sums, bias] -> y
struct NormDots { bool centered = false; bool operator==(const NormDots&) const = default; };  // dy, x, w [, sums] -> sum of dy x w [, sum of dy w]
struct NormGrad { double eps = 0; bool centered = false; bool operator==(const NormGrad&) const = default; };  // dy, x, w, squares, dots [, sums, sums of dy w] [, addend] -> dx, dw
struct RopeTable { double theta = 0; RopeScaling scaling; bool operator==(const RopeTable&) const = default; };    // [positions] -> [seq, head_dim], or of each sequence's positions its own
// Turns the last of x's last dimension, as many as the table has; pairs are neighbours, or of two halves.
struct Rope { bool inverse = false, neighbours = false; bool operator==(const Rope&) const = default; };  // x, table -> y
// Along the last dimension; b may lack dimensions of a just before it, and is then repeated.
struct Join { bool operator==(const Join&) const = default; };          // a, b -> a followed by b
struct JoinGrad { bool operator==(const JoinGrad&) const = default; };  // d -> da, db
// `causal`: a query sees the keys up to its own position; else all keys of its sequence, as in an encoder.
struct Attention { bool causal = true; bool operator==(const Attention&) const = default; };          // q, k, v -> o, lse
// Of queries against the keys and values in pages, [batch, pages, page, kv_heads, ...], and those of this pass, which
// are added to the pages. Causal; `context`: positions of a sequence, at most. Of pages in parts, [batch, pages, part,
// page, ...], it gives what each part has found: o with `part` before its dimensions, and lse.
struct CachedAttention { std::int64_t context = 0; bool operator==(const CachedAttention&) const = default; };  // q, k, v, requests, keys, values -> o, keys, values [, lse]
struct MergeParts { bool operator==(const MergeParts&) const = default; };  // o and lse of each part -> o
struct AttentionGrad { bool causal = true; bool operator==(const AttentionGrad&) const = default; };  // q, k, v, o, lse, do -> dq, dk, dv
// x Phi(x) with Phi's approximation by tanh (Hendrycks and Gimpel 2016), as GPT-2 has it.
struct Gelu { bool operator==(const Gelu&) const = default; };          // x -> y
struct GeluGrad { bool operator==(const GeluGrad&) const = default; };  // x, dy -> dx
struct SwiGlu { bool operator==(const SwiGlu&) const = default; };          // gate, up -> h
struct SwiGluGrad { bool operator==(const SwiGluGrad&) const = default; };  // gate, up, dh -> dgate, dup
// Mixture of experts (runtime/device/kernels/experts.h). Rows are a tensor of their own kind, see Tensor::counts; products
// and SwiGLU take their counts as a last input.
struct Route { std::int32_t choices = 1; bool sigmoid = false, normalize = true; double scale = 1, aux = 0;  // logits [, bias] -> gates, ids, load
               std::int32_t groups = 1, group_choices = 1;  // of experts
               std::int32_t capacity = 0, group = 0;        // see Tensor::capacity
               bool operator==(const Route&) const = default; };
struct RouteGrad { Route forward; bool operator==(const RouteGrad&) const = default; };    // logits, ids, dgates [, load: with aux] -> dlogits
struct Dispatch { bool operator==(const Dispatch&) const = default; };                     // x, ids -> rows, counts
struct Combine { bool operator==(const Combine&) const = default; };                       // rows, ids [, gates] -> y
struct CombineGrad { bool operator==(const CombineGrad&) const = default; };               // dy, rows, ids, gates -> drows, dgates
struct Balance { double rate = 0; bool operator==(const Balance&) const = default; };      // bias, load -> bias
// b may lack the first dimensions of a, and is then repeated; its gradient is a sum over them.
struct Add { bool operator==(const Add&) const = default; };          // a, b -> a + b
struct SumRows { bool operator==(const SumRows&) const = default; };  // x -> sum over the first dims, which the output lacks
struct Cast { bool operator==(const Cast&) const = default; };              // x -> x in the output's data type
// Cross entropy with the vocabulary possibly split: each device knows the maximum m' of its own part,
// e = exp(logit - m') and s' = sum e; m is the reduced maximum, s = sum over devices of s' exp(m' - m).
// `scale`: what logits are multiplied with before anything else (1 / temperature).
struct SoftmaxStats { double scale = 1; bool operator==(const SoftmaxStats&) const = default; };  // logits, targets -> e, m', s', target logit
struct RescaleSums { bool operator==(const RescaleSums&) const = default; };    // s', m', m -> s
struct TokenLoss { double scale = 1; bool operator==(const TokenLoss&) const = default; };  // s, m, target logit, targets [, weights] -> loss
// dlogits = scale * weight * (softmax - one at the target), without weights 1.
struct CrossEntropyGrad { double scale = 1; bool operator==(const CrossEntropyGrad&) const = default; };  // e, m', m, s, targets [, weights] -> dlogits
// Of each target; 0 where none is counted.
struct TokenLogProbs { bool operator==(const TokenLogProbs&) const = default; };  // s, m, target logit, targets -> logp
// What a policy is trained by (runtime/device/kernels/policy.h).
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
struct SelectRow { bool operator==(const SelectRow&) const = default; };  // x[batch, seq, ...], requests -> row of each sequence's last token
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
struct Shift { AxisList axes; bool operator==(const Shift&) const = default; };  // to the next along the axes, from the one before
// The queries of a device against the keys and values of the one `step` before it along the axes: in step 0
// its own. Further steps merge with what those before have found.
struct AttentionStep { AxisList axes; int step = 0; bool causal = true; bool operator==(const AttentionStep&) const = default; };  // q, k, v [, o, lse] -> o, lse
struct AttentionStepGrad { AxisList axes; int step = 0; bool causal = true; bool operator==(const AttentionStepGrad&) const = default; };  // q, k, v, o, lse, do [, dq] -> dq, dk, dv of these keys
struct Slice { AxisList axes; int dim = 0; bool operator==(const Slice&) const = default; };
// Counts and rows of experts along some axes, from the devices that have the tokens to those that have the experts.
struct ExchangeCounts { AxisList axes; bool operator==(const ExchangeCounts&) const = default; };  // counts -> those of each source
struct SumCounts { bool operator==(const SumCounts&) const = default; };                           // of each source -> counts
struct ExchangeRows { AxisList axes; bool back = false; bool operator==(const ExchangeRows&) const = default; };  // rows, counts, of each source -> rows
struct Regroup { bool back = false; bool operator==(const Regroup&) const = default; };  // rows by source, counts of each source -> rows by expert
// Between the stages of a pipeline (inserted by runtime/compile/partition): to or from the device whose
// coordinate on `axis` is `peer` and all others are the same. Both name the same tensor.
struct Send { AxisId axis = 0; int peer = 0; bool operator==(const Send&) const = default; };  // x ->
struct Recv { AxisId axis = 0; int peer = 0; bool operator==(const Recv&) const = default; };  // -> x
// A part of a sum over micro-batches that was redistributed before it is added: x [, addend] -> sum
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

// One of them. Copies, moves, comparisons and the destructor have a case for each kind; they are
// compiled once, in graph.cc, and not wherever a node is copied.
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
  std::string name;  // "layers.3.attention.wq", with ".grad" and the like; of this node alone
  GraphOp op;
  std::vector<TensorId> inputs, outputs;
  TensorId addend;  // output 0 is this value plus what the operator computes; of Matmul, EmbeddingGrad,
                    // SumRows, Accumulate
  Phase phase = Phase::kForward;
  int layer =
      -1;         // of the model, from 0; -1: before them (embedding); their number: behind them (head, loss)
  int stage = 0;  // of the pipeline, in the order of the forward pass; not of update and initialisation
  std::string reason;  // of a redistribution's step: why the shard pass makes it, in words for users
  bool again = false;  // in the backward pass, what the forward pass has computed
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

// Elements that one device holds of `t` when it lies as `layout` says; of rows of experts the most that there
// can be.
std::int64_t local_elements(const Graph& graph, TensorId t, const Layout& layout, const Mesh& mesh);
// Those of them that are expected to exist. Of rows of experts: as many as an even share of the tokens
// brings, which is what every estimate of time goes by. Never more than local_elements(), which is what
// memory goes by.
std::int64_t expected_elements(const Graph& graph, TensorId t, const Layout& layout, const Mesh& mesh);
// Bytes of a device's part of `t`, in the graph's layout, that are expected to stay empty.
Bytes empty_bytes(const Graph& graph, TensorId t, const Mesh& mesh);

// The state that `t` ends up stored in: itself, or what it updates.
TensorId storage_of(const Graph& graph, TensorId t);
bool is_state(TensorClass cls);
bool is_accumulated(TensorClass cls);

std::string print(const Graph& graph, const Mesh& mesh);
// No use before definition, one definition a tensor, one node a name. Throws kInternal.
void verify(const Graph& graph);

}  // namespace hyperrun

// The instructions of a device: operators with every size resolved. A position that differs between devices
// is a Coord, so that one Program serves the whole mesh.
//
// instr_fields.h lists the fields of each op once; printing and serialisation are made from that.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/ir/layout.h"
#include "runtime/ir/rope.h"
#include "runtime/ir/tier.h"
#include "runtime/ir/zigzag.h"

namespace hyperrun {

// The begin of a device's part of a dimension: stride * (index of its slice along `axes`).
struct Coord {
  AxisList axes;
  std::int64_t stride = 0;
  std::int64_t at(const Mesh& mesh, std::int64_t device) const { return stride * mesh.index(device, axes); }
  bool operator==(const Coord&) const = default;
};

// Conventions of the instructions:
//   - Operands are listed as in -> out; "rows" counts every dimension but the last.
//   - An op with `accumulate` adds to its output 0 instead of overwriting it.
//   - Each operand has its data type (Operand::dtype). Operands not marked i32 are float32 or bfloat16, by
//     the rules of runtime/compile/precision.h. Arithmetic is float32, results are rounded once.
//   - A Coord counts places in storage; `order` maps such a place to a position of the text.
namespace instr {

// out[m,n] (+)= op(a)[m,k] * op(b)[k,n]
struct Gemm {
  bool trans_a = false, trans_b = false, accumulate = false;
  std::int64_t m = 0, n = 0, k = 0;
  bool operator==(const Gemm&) const = default;
};
struct Positions {  // ids [, requests i32[sequences, request]] -> i32[sequences, length]: places in the text
  std::int64_t sequences = 0, length = 0;
  Coord first;
  Zigzag order;
  std::int64_t request = 0;  // numbers in a request's row; 0: all sequences have the same places
  bool operator==(const Positions&) const = default;
};
struct Embedding {  // ids i32[rows], table[vocab, width] -> [rows, width]; ids outside the slice give zeros
  std::int64_t rows = 0, width = 0, vocab = 0;
  Coord first;
  bool operator==(const Embedding&) const = default;
};
struct EmbeddingGrad {  // ids, drows[rows, width] -> dtable[vocab, width]
  bool accumulate = false;
  std::int64_t rows = 0, width = 0, vocab = 0;
  Coord first;
  bool operator==(const EmbeddingGrad&) const = default;
};
// `whole`: the width of the undivided row, over which the sums are. `centered`: x is taken minus its mean,
// which is sums / whole.
struct RowSums {  // x[rows, width] -> sums [rows]
  std::int64_t rows = 0, width = 0;
  bool operator==(const RowSums&) const = default;
};
struct RowSquares {  // x[rows, width] [, sums[rows]] -> sums of squares [rows]
  bool centered = false;
  std::int64_t rows = 0, width = 0, whole = 0;
  bool operator==(const RowSquares&) const = default;
};
struct Norm {  // x[rows, width], w[width], squares[rows] [, sums[rows], bias[width]] -> y
  bool centered = false;
  std::int64_t rows = 0, width = 0, whole = 0;
  double eps = 0;
  bool operator==(const Norm&) const = default;
};
struct NormDots {  // dy, x[rows, width], w[width] [, sums[rows]] -> sums of dy x w [rows] [, of dy w [rows]]
  bool centered = false;
  std::int64_t rows = 0, width = 0, whole = 0;
  bool operator==(const NormDots&) const = default;
};
// dy, x, w, squares, dots [, sums, sums of dy w] [, addend] -> dx (+ addend), dw (+= when accumulate)
struct NormGrad {
  bool accumulate = false, addend = false, centered = false;
  std::int64_t rows = 0, width = 0, whole = 0;
  double eps = 0;
  bool operator==(const NormGrad&) const = default;
};
// [positions i32] -> [positions, head_dim]: for each position head_dim/2 cosines, then head_dim/2 sines
struct RopeTable {
  std::int64_t positions = 0, head_dim = 0;
  double theta = 0;
  Coord first;
  Zigzag order;
  std::vector<double> frequencies;  // of the pairs; empty: theta^(-2i / head_dim)
  double magnitude = 1;             // factor of cosines and sines
  bool operator==(const RopeTable&) const = default;
};
// x[batch, seq, heads, head_dim], table[., turned] -> y: the last `turned` elements of each head are rotated,
// or the first
struct Rope {
  bool inverse = false;
  bool neighbours = false;  // a pair is two neighbours; else one element of each half
  bool each = false;        // each sequence has a table of its own
  std::int64_t batch = 0, seq = 0, heads = 0, head_dim = 0, turned = 0;
  bool at_front = false;
  bool operator==(const Rope&) const = default;
};
struct Join {  // a[rows, repeat, left], b[rows, right] -> [rows, repeat, left + right]
  std::int64_t rows = 0, repeat = 1, left = 0, right = 0;
  bool operator==(const Join&) const = default;
};
// d[rows, repeat, left + right] -> da[rows, repeat, left], db[rows, right]: summed over `repeat`
struct JoinGrad {
  std::int64_t rows = 0, repeat = 1, left = 0, right = 0;
  bool operator==(const JoinGrad&) const = default;
};
// q[batch,seq,kv_heads,group,head_dim], k[batch,seq,kv_heads,head_dim], v[.., value_dim]
// -> o[batch,seq,kv_heads,group,value_dim], lse; scratch last.
// `causal`: a query sees the keys up to its own position; else all keys of its sequence. `window`: only so
// many of them, the last ones; 0: all. `ring`: a sequence with a window is in the zigzag order of these
// devices. `scale`: the factor of the scores; 0: 1 / sqrt(head_dim).
struct Attention {
  std::int64_t batch = 0, seq = 0, kv_heads = 0, group = 0, head_dim = 0, value_dim = 0;
  bool causal = true;
  std::int64_t window = 0;
  AxisList ring;
  double scale = 0;
  bool operator==(const Attention&) const = default;
};
struct AttentionGrad {  // q, k, v, o, lse, do -> dq, dk, dv; scratch last
  std::int64_t batch = 0, seq = 0, kv_heads = 0, group = 0, head_dim = 0, value_dim = 0;
  bool causal = true;
  std::int64_t window = 0;
  AxisList ring;
  double scale = 0;
  bool operator==(const AttentionGrad&) const = default;
};
// Attention of a generation's pass (requests.h): each sequence's queries against the keys and values in its
// pages, and those of this pass, which it adds to the pages.
// q, k, v [batch, seq, ..] like Attention, requests i32[batch, request], keys [pages, page, kv_heads,
// head_dim], values [.., value_dim] -> o, keys, values in place [, lse]
struct CachedAttention {
  std::int64_t batch = 0, seq = 0, kv_heads = 0, group = 0, head_dim = 0, value_dim = 0;
  std::int64_t request = 0, pages = 0, page = 0;
  std::int64_t context = 0;  // most positions of a sequence
  std::int64_t parts = 1;    // parts of a page; this device has one. With several, o is float32 and partial.
  Coord part;
  std::int64_t window = 0;
  double scale = 0;
  bool operator==(const CachedAttention&) const = default;
};
struct MergeParts {  // float32[parts, batch, seq, heads, width], lse[parts, batch, heads, seq] -> o
  std::int64_t parts = 0, batch = 0, seq = 0, heads = 0, width = 0;
  bool operator==(const MergeParts&) const = default;
};
// A later step of attention round a ring: the keys and values are those of the device `step` before this one.
// Each device holds `seq` positions of a sequence: in zigzag order if causal; else in any order, and all
// queries see all keys.
struct AttentionStep {  // q, k, v, o, lse -> o, lse; scratch last
  std::int64_t batch = 0, seq = 0, kv_heads = 0, group = 0, head_dim = 0, value_dim = 0;
  AxisList ring;
  std::int64_t step = 0;
  bool causal = true;
  std::int64_t window = 0;
  double scale = 0;
  bool operator==(const AttentionStep&) const = default;
};
struct AttentionStepGrad {  // q, k, v, o, lse, do, dq -> dq, dk, dv; scratch last
  std::int64_t batch = 0, seq = 0, kv_heads = 0, group = 0, head_dim = 0, value_dim = 0;
  AxisList ring;
  std::int64_t step = 0;
  bool causal = true;
  std::int64_t window = 0;
  double scale = 0;
  bool operator==(const AttentionStepGrad&) const = default;
};
struct Gelu {  // x[n] -> y[n]
  std::int64_t n = 0;
  bool operator==(const Gelu&) const = default;
};
struct GeluGrad {  // x[n], dy[n] -> dx[n]
  std::int64_t n = 0;
  bool operator==(const GeluGrad&) const = default;
};
// With `groups` the operands are rows of that many experts: the last input is `counts` i32[groups], and
// n = width x the number of rows when all experts are chosen equally often. The same holds for SwiGluGrad.
struct SwiGlu {  // gate[n], up[n] -> h[n]
  std::int64_t n = 0, groups = 0, width = 0;
  bool operator==(const SwiGlu&) const = default;
};
struct SwiGluGrad {  // gate, up, dh -> dgate, dup
  std::int64_t n = 0, groups = 0, width = 0;
  bool operator==(const SwiGluGrad&) const = default;
};
// Products of experts (runtime/device/kernels/experts.h). `rows`: the number of rows when all experts are
// chosen equally often. For a tile of the rows (Operand::tile), `rows` and a SwiGlu's n are the tile's, and
// the counts are i32[sources, groups]; the number of sources follows from the bytes of that operand.
struct GroupedGemm {  // rows[., k], b[groups, n, k] (or [groups, k, n]), counts i32[groups] -> [., n]
  bool accumulate = false, trans_b = false;
  std::int64_t groups = 0, n = 0, k = 0, rows = 0;
  bool operator==(const GroupedGemm&) const = default;
};
struct GroupedOuter {  // a[., m], b[., n], counts i32[groups] -> [groups, m, n]
  bool accumulate = false;
  std::int64_t groups = 0, m = 0, n = 0, rows = 0;
  bool operator==(const GroupedOuter&) const = default;
};
struct Route {  // logits[tokens, experts] [, bias] -> gates, ids i32, load; scratch [2, experts]
  std::int64_t tokens = 0, experts = 0, choices = 0;
  bool sigmoid = false, normalize = true;
  double scale = 1;
  std::int64_t groups = 1;         // groups of experts
  std::int64_t group_choices = 1;  // groups that a token chooses from
  std::int64_t capacity = 0;       // most rows of an expert in each `group` of tokens; 0: no bound
  std::int64_t group = 0;
  std::int64_t seq = 0;  // tokens of a sequence
  Zigzag order;
  std::int64_t group_best = 2;  // scores of a group whose sum ranks it
  bool operator==(const Route&) const = default;
};
struct RouteGrad {  // logits, ids i32, dgates [, load: with aux] -> dlogits
  std::int64_t tokens = 0, experts = 0, choices = 0;
  bool sigmoid = false, normalize = true;
  double scale = 1, aux = 0;
  bool operator==(const RouteGrad&) const = default;
};
struct Dispatch {  // x[tokens, width], ids i32[tokens, choices] -> rows, counts i32[experts]; scratch
                   // [experts]
  std::int64_t tokens = 0, experts = 0, choices = 0, width = 0;
  bool operator==(const Dispatch&) const = default;
};
struct Combine {  // rows, ids i32 [, gates] -> y[tokens, width]; scratch [experts]
  std::int64_t tokens = 0, experts = 0, choices = 0, width = 0;
  bool operator==(const Combine&) const = default;
};
struct CombineGrad {  // dy[tokens, width], rows, ids i32, gates -> drows, dgates; scratch [experts]
  std::int64_t tokens = 0, experts = 0, choices = 0, width = 0;
  bool operator==(const CombineGrad&) const = default;
};
struct Balance {  // bias[experts], load[experts] -> bias in place
  std::int64_t experts = 0;
  double rate = 0;
  bool operator==(const Balance&) const = default;
};
struct SumCounts {  // i32[sources, experts] -> i32[experts]
  std::int64_t sources = 0, experts = 0;
  bool operator==(const SumCounts&) const = default;
};
struct Regroup {  // rows[., width] by source, i32[sources, experts] -> by expert, or back
  bool back = false;
  std::int64_t sources = 0, experts = 0, width = 0, rows = 0;
  bool operator==(const Regroup&) const = default;
};
struct Add {  // a[repeat, n], b[n] -> a + b
  std::int64_t n = 0, repeat = 1;
  bool operator==(const Add&) const = default;
};
struct SumRows {  // x[rows, width] -> sum over the rows [width]
  bool accumulate = false;
  std::int64_t rows = 0, width = 0;
  bool operator==(const SumRows&) const = default;
};
struct Cast {  // x[n] -> [n], rounded to nearest even
  std::int64_t n = 0;
  bool operator==(const Cast&) const = default;
};
struct Accumulate {  // x[n] -> sum[n]
  bool accumulate = false;
  std::int64_t n = 0;
  bool operator==(const Accumulate&) const = default;
};
// logits[rows, width], targets i32[rows] -> e (in the place of logits), m'[rows], s'[rows], target
// logit[rows]; the logits are multiplied by `scale` first. Columns from `vocab` on, of the whole vocabulary,
// are padding and have no probability; 0: there are none.
struct SoftmaxStats {
  std::int64_t rows = 0, width = 0;
  Coord first;
  double scale = 1;
  std::int64_t vocab = 0;
  bool operator==(const SoftmaxStats&) const = default;
};
struct RescaleSums {  // s'[rows], m'[rows], m[rows] -> s[rows]
  std::int64_t rows = 0;
  bool operator==(const RescaleSums&) const = default;
};
struct TokenLoss {  // s[rows], m[rows], target logit[rows], targets i32[rows] [, weights[rows]] -> scalar
  bool accumulate = false;
  std::int64_t rows = 0;
  double scale = 1;
  bool operator==(const TokenLoss&) const = default;
};
// e[rows, width], m'[rows], m[rows], s[rows], targets i32[rows] [, weights[rows]] -> dlogits (in the place of
// e)
struct CrossEntropyGrad {
  std::int64_t rows = 0, width = 0;
  double scale = 1;
  Coord first;
  bool operator==(const CrossEntropyGrad&) const = default;
};
struct TokenLogProbs {  // s[rows], m[rows], target logit[rows], targets i32[rows] -> logp[rows]
  std::int64_t rows = 0;
  bool operator==(const TokenLogProbs&) const = default;
};
struct PolicyLoss {  // logp, targets i32, weight, advantage, behaviour, reference, all [rows] -> loss,
                     // divergence, clipped, ratio [4]
  bool accumulate = false;
  std::int64_t rows = 0;
  double clip = 0, kl = 0;
  bool operator==(const PolicyLoss&) const = default;
};
struct PolicyGrad {  // the same -> dlogp[rows]
  std::int64_t rows = 0;
  double clip = 0, kl = 0;
  bool operator==(const PolicyGrad&) const = default;
};
struct Elements {  // x[n] -> n scalars
  bool operator==(const Elements&) const = default;
};
struct SumSquares {  // any number of inputs -> scalar
  bool operator==(const SumSquares&) const = default;
};
struct AddScalars {  // scalars -> scalar
  bool operator==(const AddScalars&) const = default;
};
struct ClipFactor {  // squares + Scalars::other_squares -> min(1, max_norm / norm) (1 if max_norm is 0), norm
  double max_norm = 0;
  bool operator==(const ClipFactor&) const = default;
};
struct AdamW {  // w, g, m, v [, factor of g] -> w, m, v in place
  std::int64_t n = 0;
  double beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  bool operator==(const AdamW&) const = default;
};
// -> the device's part of a random tensor. Each element depends on its global index alone, not on the layout.
struct InitNormal {
  std::vector<std::int64_t> shape, local;  // global and local
  std::vector<Coord> first;
  double std = 0;
  std::uint64_t key = 0;  // random key of the tensor
  bool operator==(const InitNormal&) const = default;
};
struct Fill {  // -> [n]
  std::int64_t n = 0;
  double value = 0;
  bool operator==(const Fill&) const = default;
};
struct Copy {  // in[outer, parts, inner] -> out[outer, inner]: part `part`; parts = 1 copies all
  std::int64_t outer = 1, parts = 1, inner = 0;
  AxisList part;  // the part's number is the device's index on these axes
  std::int64_t element_bytes = 4;
  bool operator==(const Copy&) const = default;
};
// Copies a box of one row-major array into a box of another: at most five dimensions, size[d] elements along
// dimension d, with strides from[d] and to[d] in elements. Operands begin at the box's first element and end
// with its last. If the data types differ, the last strides must be 1 on both sides.
struct StridedCopy {
  std::vector<std::int64_t> size, from, to;
  bool operator==(const StridedCopy&) const = default;
};
// -> ids i32[sequences, length], targets [, targets one further on, ...] of the step that the invocation
// names. Targets behind the end of a sequence are -1.
struct LoadBatch {
  std::int64_t micro_batch_first = 0;  // first sequence of the micro-batch in the step's batch
  std::int64_t sequences = 0, length = 0;
  Coord sequence, position;
  Zigzag order;
  std::int64_t whole = 0;  // tokens of a sequence
  bool operator==(const LoadBatch&) const = default;
};
// Prefetch and Store move bytes between HBM and a lower tier. A buffer may leave HBM without a Store if its
// bytes are not needed again or are in the lower tier already.
//
// With `row` the bytes are rows of experts, `row` bytes each. The second input is counts i32[.]; their sum is
// the number of rows moved.
struct Prefetch {  // bytes in `from` [, counts] -> the same in HBM
  Tier from = Tier::kPool;
  std::int64_t bytes = 0, row = 0;
  bool operator==(const Prefetch&) const = default;
};
struct Store {  // bytes in HBM [, counts] -> the same in `to`
  Tier to = Tier::kPool;
  std::int64_t bytes = 0, row = 0;
  bool operator==(const Store&) const = default;
};
struct LoadRequests {  // -> ids i32[sequences, length], requests i32[sequences, request]
  std::int64_t sequences = 0, length = 0, request = 0;
  Coord sequence, position;
  Zigzag order;
  bool operator==(const LoadRequests&) const = default;
};
// -> ids i32[sequences, length], targets i32 [, weight [, advantage, behaviour, reference]] [, rows of
// features i32, ...] of the invocation's samples
struct LoadSamples {
  std::int64_t micro_batch_first = 0;  // first sequence of the micro-batch in the samples
  std::int64_t sequences = 0, length = 0;
  Coord sequence, position;
  Zigzag order;
  std::int64_t whole = 0;     // tokens of a sequence
  std::int64_t features = 0;  // number of outputs with rows of features; they come last
  bool operator==(const LoadSamples&) const = default;
};
struct LoadVectors {  // -> vectors[items, tokens, width] of the invocation's input vectors
  std::int64_t items = 0, tokens = 0, width = 0;
  Coord item;
  bool operator==(const LoadVectors&) const = default;
};
struct LoadPort {  // port[slots, n] -> [n], the slot that the invocation names
  std::int64_t slots = 1, n = 0;
  bool operator==(const LoadPort&) const = default;
};
// Reads a box of another rank's HBM, in the slot that the invocation names. The other rank takes no part.
struct Fetch {
  std::int32_t from_rank = 0, to_rank = 0;
  std::int64_t offset = 0;                   // bytes from the begin of that HBM to the box of slot 0
  std::int64_t slot = 0;                     // bytes from one slot to the next
  std::vector<std::int64_t> size, from, to;  // elements along each dimension, and strides there and here
  bool operator==(const Fetch&) const = default;
};
struct StorePort {  // x[n], port[slots, n] -> port in place, the slot that the invocation names
  std::int64_t slots = 1, n = 0;
  bool operator==(const StorePort&) const = default;
};
// x[batch, seq, width], requests i32[batch, request] -> [batch, width], the row of each sequence's last
// token. The row is zeros if the token is not in the device's slice, or the slot has no sequence.
struct SelectRow {
  std::int64_t batch = 0, seq = 0, width = 0, request = 0;
  Coord first;
  Zigzag order;
  bool operator==(const SelectRow&) const = default;
};
// logits[batch, vocab + padding], requests i32[batch, request] -> token i32[batch], logp[batch] of that token
struct Sample {
  std::int64_t batch = 0, vocab = 0, request = 0;
  double temperature = 0;
  std::int64_t top_k = 0;
  double top_p = 1;
  std::int64_t padding = 0;
  bool operator==(const Sample&) const = default;
};

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kShift,
  kSend,
  kRecv,
  kAllToAllV
};

constexpr bool is_message(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}

// A collective runs over the group of p devices that differ only on `axes`, in the order of Mesh::index.
//   all-reduce      in[inner]            -> out[inner]
//   reduce-scatter  in[outer, p, inner]  -> out[outer, inner]
//   all-gather      in[outer, inner]     -> out[outer, p, inner]
//   all-to-all      the split moves from one dimension to another. With `gather_first` the dimension that
//                   becomes whole lies before the one that becomes split:
//                   in[outer, from, middle, p, to, inner] -> out[outer, p, from, middle, to, inner]
//                   else in[outer, p, to, middle, from, inner] -> out[outer, to, middle, p, from, inner]
//   all-to-all-v    in rows[., inner], counts i32[p * experts], counts of each source i32[p, experts] -> out
//                   rows[., inner]: each device gets the rows for its experts (`back`: each gets the rows of
//                   its tokens). `outer` rows go to each device when all experts are chosen equally often
//   shift           in[inner]            -> out[inner] on the next device; the first follows the last
//   send            in[inner], to `peer`, an index in the group
//   recv                                 -> out[inner], from `peer`; the messages of a pair come in order
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  AxisList axes;
  DType dtype = DType::kF32;
  Reduction reduction = Reduction::kSum;
  std::int64_t outer = 1, inner = 1;
  std::int64_t from = 1, middle = 1, to = 1;
  bool gather_first = true;
  std::int32_t peer = 0;
  std::int64_t experts = 0;  // experts of one device
  bool back = false;
  bool operator==(const Collective&) const = default;
};

}  // namespace instr

using InstrOpKinds = std::variant<
    instr::Gemm, instr::Positions, instr::Embedding, instr::EmbeddingGrad, instr::RowSums, instr::RowSquares,
    instr::Norm, instr::NormDots, instr::NormGrad, instr::RopeTable, instr::Rope, instr::Join,
    instr::JoinGrad, instr::Attention, instr::AttentionGrad, instr::AttentionStep, instr::AttentionStepGrad,
    instr::Gelu, instr::GeluGrad, instr::SwiGlu, instr::SwiGluGrad, instr::Add, instr::SumRows,
    instr::SoftmaxStats, instr::RescaleSums, instr::TokenLoss, instr::CrossEntropyGrad, instr::SumSquares,
    instr::AddScalars, instr::ClipFactor, instr::AdamW, instr::InitNormal, instr::Fill, instr::Copy,
    instr::StridedCopy, instr::LoadBatch, instr::LoadRequests, instr::CachedAttention, instr::MergeParts,
    instr::SelectRow, instr::Sample, instr::Accumulate, instr::GroupedGemm, instr::GroupedOuter, instr::Route,
    instr::RouteGrad, instr::Dispatch, instr::Combine, instr::CombineGrad, instr::Balance, instr::SumCounts,
    instr::Regroup, instr::Collective, instr::Cast, instr::Prefetch, instr::Store, instr::LoadSamples,
    instr::TokenLogProbs, instr::PolicyLoss, instr::PolicyGrad, instr::Elements, instr::LoadVectors,
    instr::LoadPort, instr::StorePort, instr::Fetch>;

// The op of one instruction. Copies, moves, comparisons and the destructor have a case for each kind, so they
// are compiled once, in instr.cc, and not in every file that copies an instruction.
struct InstrOp : InstrOpKinds {
  using InstrOpKinds::InstrOpKinds;
  InstrOp();
  InstrOp(const InstrOp&);
  InstrOp(InstrOp&&) noexcept;
  InstrOp& operator=(const InstrOp&);
  InstrOp& operator=(InstrOp&&) noexcept;
  ~InstrOp();
  bool operator==(const InstrOp&) const;
};

std::string_view name(const InstrOp& op);
std::string_view name(instr::CollectiveKind kind);

}  // namespace hyperrun

#include "runtime/compile/lower_operator.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/ir/tensor_key.h"

namespace hyperrun {
namespace {

// The sizes of a tensor's dimensions. It does not allocate, because planning lowers operators in very many
// sizes.
class Sizes {
 public:
  void push_back(std::int64_t size) {
    HR_CHECK(count_ < sizes_.size());
    sizes_[count_++] = size;
  }
  std::size_t size() const { return count_; }
  std::int64_t operator[](std::size_t d) const { return sizes_[d]; }
  std::int64_t back() const { return sizes_[count_ - 1]; }
  auto begin() const { return sizes_.begin(); }
  auto end() const { return sizes_.begin() + count_; }

 private:
  std::array<std::int64_t, 12> sizes_;
  std::size_t count_ = 0;
};

std::int64_t product(const Sizes& sizes, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (std::size_t i = from; i < to; ++i) n *= sizes[i];
  return n;
}

// The index of the input of a norm's gradient that the result is added to.
std::size_t addend_of(const op::NormGrad& op) { return op.centered ? 7 : 5; }

class OperatorLowering {
 public:
  OperatorLowering(const LowerContext& c, const Node& node) : c_(c), node_(node) {}

  InstrOp operator()(const op::LoadBatch&) const {
    const auto ids = local(out(0));
    return instr::LoadBatch{
        0, ids[0], ids[1], part(out(0), 0), part(out(0), 1), order(out(0), 1), c_.graph.shape(out(0))[1]};
  }
  InstrOp operator()(const op::LoadSamples& op) const {
    const auto ids = local(out(0));
    return instr::LoadSamples{0,
                              ids[0],
                              ids[1],
                              part(out(0), 0),
                              part(out(0), 1),
                              order(out(0), 1),
                              c_.graph.shape(out(0))[1],
                              op.features};
  }
  InstrOp operator()(const op::LoadVectors&) const {
    const auto vectors = local(out(0));
    return instr::LoadVectors{vectors[0], vectors[1], vectors[2], part(out(0), 0)};
  }
  InstrOp operator()(const op::LoadPort&) const { return instr::LoadPort{local(in(0))[0], elements(out(0))}; }
  InstrOp operator()(const op::StorePort&) const {
    return instr::StorePort{local(in(1))[0], elements(in(0))};
  }
  InstrOp operator()(const op::LoadRequests&) const {
    const auto ids = local(out(0));
    return instr::LoadRequests{ids[0],          ids[1],          local(out(1))[1],
                               part(out(0), 0), part(out(0), 1), order(out(0), 1)};
  }
  InstrOp operator()(const op::Matmul&) const {
    if (node_.inputs.size() == 3) return grouped();
    const Factor left = factor(in(0)), right = factor(in(1));
    HR_CHECK(left.contracted == right.contracted && c_.graph.has_dim(in(0), c_.graph[out(0)].dims.front()),
             node_.name);
    return instr::Gemm{left.contracted_first, !right.contracted_first, c_.accumulate, left.kept, right.kept,
                       left.contracted};
  }
  InstrOp operator()(const op::Positions&) const {
    const auto ids = local(out(0));
    const std::int64_t request = node_.inputs.size() > 1 ? local(in(1)).back() : 0;
    return instr::Positions{ids[0], ids[1], part(out(0), 1), order(out(0), 1), request};
  }
  InstrOp operator()(const op::Embedding&) const {
    return instr::Embedding{elements(in(0)), local(in(1)).back(), rows(in(1)), first_row(in(1))};
  }
  InstrOp operator()(const op::EmbeddingGrad&) const {
    return instr::EmbeddingGrad{c_.accumulate, elements(in(0)), local(out(0)).back(), rows(out(0)),
                                first_row(out(0))};
  }
  InstrOp operator()(const op::RowSums&) const { return instr::RowSums{rows(in(0)), local(in(0)).back()}; }
  InstrOp operator()(const op::RowSquares& op) const {
    return instr::RowSquares{op.centered, rows(in(0)), local(in(0)).back(), whole(in(0))};
  }
  InstrOp operator()(const op::Norm& op) const {
    return instr::Norm{op.centered, rows(in(0)), local(in(0)).back(), whole(in(0)), op.eps};
  }
  InstrOp operator()(const op::NormDots& op) const {
    return instr::NormDots{op.centered, rows(in(1)), local(in(1)).back(), whole(in(1))};
  }
  InstrOp operator()(const op::NormGrad& op) const {
    const bool addend = node_.inputs.size() > addend_of(op);
    return instr::NormGrad{c_.accumulate,       addend,       op.centered, rows(in(1)),
                           local(in(1)).back(), whole(in(1)), op.eps};
  }
  InstrOp operator()(const op::RopeTable& op) const {
    const auto table = local(out(0));
    instr::RopeTable made{rows(out(0)), table.back(), op.theta, {}, {}, {}, rope_magnitude(op.scaling)};
    if (op.scaling != RopeScaling{})
      made.frequencies = rope_frequencies(table.back(), op.theta, op.scaling, op.longest);
    if (node_.inputs.empty()) made.first = part(out(0), 0), made.order = order(out(0), 0);
    return made;
  }
  InstrOp operator()(const op::Rope& op) const {
    const auto x = local(in(0));  // [batch, seq, heads ..., head_dim]
    const auto table = local(in(1));
    return instr::Rope{op.inverse, op.neighbours, table.size() > 2, x[0], x[1], product(x, 2, x.size() - 1),
                       x.back(),   table.back(),  op.first};
  }
  InstrOp operator()(const op::Join&) const { return join<instr::Join>(in(0), in(1)); }
  InstrOp operator()(const op::JoinGrad&) const { return join<instr::JoinGrad>(out(0), out(1)); }
  InstrOp operator()(const op::Attention& op) const { return whole_attention<instr::Attention>(op); }
  InstrOp operator()(const op::CachedAttention& op) const {
    HR_CHECK(c_.graph[c_.graph[in(0)].dims[1]].ring == 1, node_.name);
    auto o = attention<instr::CachedAttention>();
    const auto keys = local(in(4));  // [batch, pages [, part], page, kv_heads, head_dim]
    const std::size_t width = keys.size() - 1;
    HR_CHECK(keys[width - 1] == o.kv_heads, node_.name);
    o.request = local(in(3)).back();
    o.pages = keys[0] * keys[1];
    o.page = keys[width - 2];
    o.context = op.context;
    o.window = op.window < op.context ? op.window : 0;
    o.scale = op.scale;
    if (width > 4) {
      HR_CHECK(keys[2] == 1, "a device holds one part");
      o.parts = c_.graph[c_.graph[in(4)].dims[2]].size;
      o.part = part(in(4), 2);
    }
    return o;
  }
  InstrOp operator()(const op::MergeParts&) const {
    const auto x = local(in(0));  // [part, batch, seq, kv_heads, group, value_dim]
    return instr::MergeParts{x[0], x[1], x[2], x[3] * x[4], x[5]};
  }
  InstrOp operator()(const op::AttentionGrad& op) const { return whole_attention<instr::AttentionGrad>(op); }
  InstrOp operator()(const op::AttentionStep& op) const {
    return step<instr::Attention, instr::AttentionStep>(op);
  }
  InstrOp operator()(const op::AttentionStepGrad& op) const {
    return step<instr::AttentionGrad, instr::AttentionStepGrad>(op);
  }
  InstrOp operator()(const op::Gelu&) const { return instr::Gelu{elements(in(0))}; }
  InstrOp operator()(const op::GeluGrad&) const { return instr::GeluGrad{elements(in(0))}; }
  InstrOp operator()(const op::SwiGlu&) const {
    return instr::SwiGlu{expected(in(0)), groups(2), width(in(0), groups(2))};
  }
  InstrOp operator()(const op::SwiGluGrad&) const {
    return instr::SwiGluGrad{expected(in(0)), groups(3), width(in(0), groups(3))};
  }
  InstrOp operator()(const op::Route& op) const {
    const auto logits = local(in(0));  // [batch, seq, experts]
    return instr::Route{rows(in(0)), logits.back(),   op.choices,       op.sigmoid,  op.normalize,
                        op.scale,    op.groups,       op.group_choices, op.capacity, op.group,
                        logits[1],   order(in(0), 1), op.group_best};
  }
  InstrOp operator()(const op::RouteGrad& op) const {
    const op::Route& f = op.forward;
    return instr::RouteGrad{rows(in(0)), local(in(0)).back(), f.choices, f.sigmoid, f.normalize, f.scale,
                            f.aux};
  }
  InstrOp operator()(const op::Dispatch&) const {
    return instr::Dispatch{rows(in(0)), local(out(0))[0], local(in(1)).back(), local(in(0)).back()};
  }
  InstrOp operator()(const op::Combine&) const {
    return instr::Combine{rows(out(0)), local(in(0))[0], local(in(1)).back(), local(out(0)).back()};
  }
  InstrOp operator()(const op::CombineGrad&) const {
    return instr::CombineGrad{rows(in(0)), local(in(1))[0], local(in(2)).back(), local(in(0)).back()};
  }
  InstrOp operator()(const op::Balance& op) const { return instr::Balance{elements(in(0)), op.rate}; }
  InstrOp operator()(const op::ExchangeCounts& op) const {
    instr::Collective c = collective(instr::CollectiveKind::kAllToAll, op.axes);
    c.to = local(out(0))[0];  // from [p, experts] to [experts] of each of p sources
    return c;
  }
  InstrOp operator()(const op::SumCounts&) const {
    return instr::SumCounts{c_.graph[in(0)].vectors, local(in(0))[0]};
  }
  InstrOp operator()(const op::ExchangeRows& op) const {
    instr::Collective c = collective(instr::CollectiveKind::kAllToAllV, op.axes);
    c.experts = local(in(2))[0];
    c.back = op.back;
    c.inner = width(in(0), 1);
    c.outer = even_rows(in(0)) / c_.mesh.size(op.axes);
    return c;
  }
  InstrOp operator()(const op::Regroup& op) const {
    return instr::Regroup{op.back, c_.graph[in(1)].vectors, local(in(1))[0], width(in(0), 1),
                          even_rows(in(0))};
  }
  InstrOp operator()(const op::Add&) const { return instr::Add{elements(in(1)), repeats(out(0), in(1))}; }
  InstrOp operator()(const op::SumRows&) const {
    return instr::SumRows{c_.accumulate, repeats(in(0), out(0)), elements(out(0))};
  }
  InstrOp operator()(const op::Cast&) const { return instr::Cast{elements(in(0))}; }
  InstrOp operator()(const op::SoftmaxStats& op) const {
    const auto x = local(in(0));
    const Dim& vocab = last_dim(in(0));
    return instr::SoftmaxStats{product(x, 0, x.size() - 1), x.back(), part(in(0), x.size() - 1), op.scale,
                               vocab.padding > 0 ? vocab.size - vocab.padding : 0};
  }
  InstrOp operator()(const op::RescaleSums&) const { return instr::RescaleSums{elements(in(0))}; }
  InstrOp operator()(const op::TokenLoss& op) const {
    return instr::TokenLoss{c_.accumulate, elements(in(0)), op.scale};
  }
  InstrOp operator()(const op::CrossEntropyGrad& op) const {
    const auto e = local(in(0));
    return instr::CrossEntropyGrad{product(e, 0, e.size() - 1), e.back(), op.scale,
                                   part(in(0), e.size() - 1)};
  }
  InstrOp operator()(const op::TokenLogProbs&) const { return instr::TokenLogProbs{elements(in(0))}; }
  InstrOp operator()(const op::PolicyLoss& op) const {
    return instr::PolicyLoss{c_.accumulate, elements(in(0)), op.clip, op.kl};
  }
  InstrOp operator()(const op::PolicyGrad& op) const {
    return instr::PolicyGrad{elements(in(0)), op.clip, op.kl};
  }
  InstrOp operator()(const op::Elements&) const { return instr::Elements{}; }
  InstrOp operator()(const op::Accumulate&) const {
    return instr::Accumulate{c_.accumulate, elements(in(0))};
  }
  InstrOp operator()(const op::SumSquares&) const { return instr::SumSquares{}; }
  InstrOp operator()(const op::AddScalars&) const { return instr::AddScalars{}; }
  InstrOp operator()(const op::ClipFactor& op) const { return instr::ClipFactor{op.max_norm}; }
  InstrOp operator()(const op::AdamW& op) const {
    return instr::AdamW{elements(in(0)), op.beta1, op.beta2, op.eps, op.weight_decay};
  }
  InstrOp operator()(const op::InitNormal& op) const {
    const Sizes here = local(out(0));
    instr::InitNormal init{
        c_.graph.shape(out(0)), {here.begin(), here.end()}, {}, op.std, tensor_key(c_.graph[out(0)].name)};
    for (std::size_t d = 0; d < init.shape.size(); ++d) init.first.push_back(part(out(0), d));
    return init;
  }
  InstrOp operator()(const op::InitFill& op) const { return instr::Fill{elements(out(0)), op.value}; }
  InstrOp operator()(const op::SelectRow&) const {
    const auto x = local(in(0));
    return instr::SelectRow{x[0],           x[1],           product(x, 2, x.size()), local(in(1)).back(),
                            part(in(0), 1), order(in(0), 1)};
  }
  InstrOp operator()(const op::Sample& op) const {
    const auto logits = local(in(0));
    const std::int64_t padding = last_dim(in(0)).padding;
    return instr::Sample{logits[0], logits[1] - padding, local(in(1))[1], op.temperature, op.top_k, op.top_p,
                         padding};
  }

  InstrOp operator()(const op::AllReduce& op) const {
    instr::Collective c = collective(instr::CollectiveKind::kAllReduce, op.axes);
    c.reduction = op.reduction;
    c.inner = elements(in(0));
    return c;
  }
  InstrOp operator()(const op::ReduceScatter& op) const {
    instr::Collective c = collective(instr::CollectiveKind::kReduceScatter, op.axes);
    split_at(c, local(out(0)), op.dim);
    return c;
  }
  InstrOp operator()(const op::AllGather& op) const {
    instr::Collective c = collective(instr::CollectiveKind::kAllGather, op.axes);
    split_at(c, local(in(0)), op.dim);
    return c;
  }
  InstrOp operator()(const op::AllToAll& op) const {
    instr::Collective c = collective(instr::CollectiveKind::kAllToAll, op.axes);
    const auto before = local(in(0)), after = local(out(0));
    const auto from = static_cast<std::size_t>(op.from_dim), to = static_cast<std::size_t>(op.to_dim);
    const std::size_t low = std::min(from, to), high = std::max(from, to);
    c.gather_first = from < to;
    c.outer = product(before, 0, low);
    c.middle = product(before, low + 1, high);
    c.inner = product(before, high + 1, before.size());
    c.from = before[from];
    c.to = after[to];
    return c;
  }
  InstrOp operator()(const op::Shift& op) const {
    instr::Collective c = collective(instr::CollectiveKind::kShift, op.axes);
    c.inner = elements(in(0));
    return c;
  }
  InstrOp operator()(const op::Send& op) const {
    instr::Collective c = collective(instr::CollectiveKind::kSend, {op.axis});
    c.inner = elements(in(0));
    c.peer = op.peer;
    return c;
  }
  InstrOp operator()(const op::Recv& op) const {
    instr::Collective c;
    c.kind = instr::CollectiveKind::kRecv;
    c.axes = {op.axis};
    c.dtype = c_.graph[out(0)].dtype;
    c.inner = elements(out(0));
    c.peer = op.peer;
    return c;
  }
  InstrOp operator()(const op::Slice& op) const {
    const auto sizes = local(out(0));
    const auto d = static_cast<std::size_t>(op.dim);
    return instr::Copy{product(sizes, 0, d), c_.mesh.size(op.axes), product(sizes, d, sizes.size()), op.axes,
                       size_of(c_.graph[out(0)].dtype)};
  }

 private:
  struct Factor {
    std::int64_t kept = 1, contracted = 1;
    bool contracted_first = false;
  };

  TensorId in(std::size_t i) const { return node_.inputs[i]; }
  TensorId out(std::size_t i) const { return node_.outputs[i]; }
  const Layout& layout(TensorId t) const { return c_.graph.layouts[t.index()]; }
  // The same as local_shape().
  Sizes local(TensorId t) const {
    const std::vector<DimId>& dims = c_.graph[t].dims;
    const Layout& of = layout(t);
    HR_CHECK(dims.size() == of.dims.size());
    Sizes sizes;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::int64_t size = c_.graph[dims[d]].size, parts = c_.mesh.size(of.dims[d]);
      HR_CHECK(size % parts == 0, "a layout that does not divide left the shard pass");
      sizes.push_back(size / parts);
    }
    return sizes;
  }
  // The number of rows: the product of every dimension but the last.
  std::int64_t rows(TensorId t) const {
    const auto sizes = local(t);
    return product(sizes, 0, sizes.size() - 1);
  }
  // The last dimension, undivided.
  std::int64_t whole(TensorId t) const { return c_.graph[c_.graph[t].dims.back()].size; }
  // The number of repetitions of `b` in `a`; `b` has all dimensions of `a` but the first ones.
  std::int64_t repeats(TensorId a, TensorId b) const {
    const std::vector<DimId>&of_a = c_.graph[a].dims, &of_b = c_.graph[b].dims;
    HR_CHECK(of_b.size() <= of_a.size() && std::equal(of_b.rbegin(), of_b.rend(), of_a.rbegin()), node_.name);
    return product(local(a), 0, of_a.size() - of_b.size());
  }
  std::int64_t elements(TensorId t) const { return local_elements(c_.graph, t, layout(t), c_.mesh); }

  std::int64_t expected(TensorId t) const { return expected_elements(c_.graph, t, layout(t), c_.mesh); }

  // --- rows of experts: [experts, batch, seq, ...] ----------------------------------------------------

  // The number of the device's experts; 0 if the node has no input with counts.
  std::int64_t groups(std::size_t counts) const {
    return node_.inputs.size() > counts ? local(in(counts))[0] : 0;
  }
  std::int64_t width(TensorId t, std::int64_t groups) const {
    const auto sizes = local(t);
    return groups == 0 ? 0 : product(sizes, 3, sizes.size());
  }
  // The number of rows when all experts are chosen equally often.
  std::int64_t even_rows(TensorId t) const {
    const auto sizes = local(t);
    return expected(t) / product(sizes, 3, sizes.size());
  }
  bool are_rows(TensorId t) const { return c_.graph[t].counts.valid(); }

  InstrOp grouped() const {
    const std::int64_t experts = local(in(2))[0];
    if (!are_rows(out(0)))  // a weight's gradient, [experts, m, n]
      return instr::GroupedOuter{c_.accumulate, experts, width(in(0), 1), width(in(1), 1), even_rows(in(0))};
    const std::int64_t n = width(out(0), 1), k = width(in(0), 1);
    // The weights are [experts, n, k] or [experts, k, n].
    return instr::GroupedGemm{
        c_.accumulate, c_.graph[in(1)].dims[1] == c_.graph[out(0)].dims[3], experts, n, k, even_rows(in(0))};
  }
  // The begin of this device's part of dimension `d`.
  Coord part(TensorId t, std::size_t d) const { return Coord{layout(t).dims[d], local(t)[d]}; }

  const Dim& last_dim(TensorId t) const { return c_.graph[c_.graph[t].dims.back()]; }

  // The first row of this device's part of a table. Only the first dimension of a table may be split.
  Coord first_row(TensorId table) const { return Coord{layout(table).dims[0], rows(table)}; }

  Zigzag order(TensorId t, std::size_t d) const {
    const Dim& dim = c_.graph[c_.graph[t].dims[d]];
    return Zigzag::of(dim.size, dim.ring);
  }

  template <class Op>
  Op attention() const {
    const auto q = local(in(0));
    Op op;
    op.batch = q[0], op.seq = q[1], op.kv_heads = q[2], op.group = q[3], op.head_dim = q[4];
    op.value_dim = local(in(2)).back();
    return op;
  }
  template <class Op>
  Op attention(const auto& op) const {
    auto o = attention<Op>();
    o.causal = op.causal, o.scale = op.scale;
    // A window that no query fills is none.
    o.window = op.window < c_.graph[c_.graph[in(0)].dims[1]].size ? op.window : 0;
    return o;
  }
  // The ring in whose zigzag order the sequence is; 1: the natural order.
  std::int64_t ring_of_sequence() const { return c_.graph[c_.graph[in(0)].dims[1]].ring; }
  // Attention over all positions. A causal mask needs the natural order; without a mask any order will do.
  template <class Op>
  Op whole_attention(const auto& op) const {
    HR_CHECK((!op.causal || ring_of_sequence() == 1) && layout(in(0)).dims[1].empty(), node_.name);
    return attention<Op>(op);
  }
  // The first step is plain attention: within one device's part, the zigzag order has the plain causal mask.
  // A window's depends on the device.
  template <class First, class Further>
  InstrOp step(const auto& op) const {
    HR_CHECK((!op.causal || ring_of_sequence() == c_.mesh.size(op.axes)) && layout(in(0)).dims[1] == op.axes,
             node_.name);
    if (op.step == 0) {
      auto first = attention<First>(op);
      if (first.window > 0) first.ring = op.axes;
      return first;
    }
    auto further = attention<Further>(op);
    further.ring = op.axes;
    further.step = op.step;
    return further;
  }

  // The dimensions of `a` that `b` lacks come just before the last one.
  template <class Op>
  InstrOp join(TensorId a, TensorId b) const {
    return Op{rows(b), rows(a) / rows(b), local(a).back(), local(b).back()};
  }

  // A factor of a product as a matrix. The dimensions that stay must be neighbours, and those that are summed
  // over as well.
  Factor factor(TensorId t) const {
    const auto sizes = local(t);
    Factor f;
    int changes = 0;
    bool previous = false;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const bool stays = c_.graph.has_dim(out(0), c_.graph[t].dims[d]);
      (stays ? f.kept : f.contracted) *= sizes[d];
      if (d == 0) f.contracted_first = !stays;
      changes += d > 0 && stays != previous;
      previous = stays;
    }
    HR_CHECK(changes <= 1, node_.name + ": not a matrix product without a transposition");
    return f;
  }

  instr::Collective collective(instr::CollectiveKind kind, const AxisList& axes) const {
    instr::Collective c;
    c.kind = kind;
    c.axes = axes;
    c.dtype = c_.graph[in(0)].dtype;
    return c;
  }
  static void split_at(instr::Collective& c, const Sizes& sizes, int dim) {
    c.outer = product(sizes, 0, static_cast<std::size_t>(dim));
    c.inner = product(sizes, static_cast<std::size_t>(dim), sizes.size());
  }

  const LowerContext& c_;
  const Node& node_;
};

}  // namespace

InstrOp lower_operator(const LowerContext& context, const Node& node) {
  return std::visit(OperatorLowering(context, node), node.op);
}

namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

struct {
  Pairs operator()(const op::Rope&) const { return {{0, 0}}; }
  Pairs operator()(const op::NormGrad& op) const { return {{0, addend_of(op)}, {0, 0}}; }
  Pairs operator()(const op::AttentionStep&) const { return {{0, 3}, {1, 4}}; }
  Pairs operator()(const op::AttentionStepGrad&) const { return {{0, 6}}; }
  Pairs operator()(const op::Gelu&) const { return {{0, 0}}; }
  Pairs operator()(const op::GeluGrad&) const { return {{0, 1}, {0, 0}}; }
  Pairs operator()(const op::SwiGluGrad&) const { return {{0, 0}, {1, 1}}; }
  Pairs operator()(const op::Balance&) const { return {{0, 0}}; }
  Pairs operator()(const op::CombineGrad&) const { return {{0, 1}}; }
  Pairs operator()(const op::Add&) const { return {{0, 0}, {0, 1}}; }
  Pairs operator()(const op::SoftmaxStats&) const { return {{0, 0}}; }
  Pairs operator()(const op::CrossEntropyGrad&) const { return {{0, 0}}; }
  Pairs operator()(const op::AllReduce&) const { return {{0, 0}}; }
  Pairs operator()(const op::AdamW&) const { return {{0, 0}, {1, 2}, {2, 3}}; }
  Pairs operator()(const op::CachedAttention&) const { return {{1, 4}, {2, 5}}; }
  Pairs operator()(const op::StorePort&) const { return {{0, 1}}; }
  // Correct for every operator; it just may need more memory.
  Pairs operator()(const auto&) const { return {}; }
} constexpr kInPlace;

struct {
  StreamKind operator()(const instr::Gemm&) const { return StreamKind::kCube; }
  StreamKind operator()(const instr::GroupedGemm&) const { return StreamKind::kCube; }
  StreamKind operator()(const instr::GroupedOuter&) const { return StreamKind::kCube; }
  StreamKind operator()(const instr::Attention&) const { return StreamKind::kCube; }
  StreamKind operator()(const instr::AttentionGrad&) const { return StreamKind::kCube; }
  StreamKind operator()(const instr::CachedAttention&) const { return StreamKind::kCube; }
  StreamKind operator()(const instr::AttentionStep&) const { return StreamKind::kCube; }
  StreamKind operator()(const instr::AttentionStepGrad&) const { return StreamKind::kCube; }
  StreamKind operator()(const instr::Collective& c) const {
    if (c.kind == instr::CollectiveKind::kSend) return StreamKind::kSend;
    return c.kind == instr::CollectiveKind::kRecv ? StreamKind::kRecv : StreamKind::kComm;
  }
  StreamKind operator()(const instr::LoadBatch&) const { return StreamKind::kDmaIn; }
  StreamKind operator()(const instr::LoadSamples&) const { return StreamKind::kDmaIn; }
  StreamKind operator()(const instr::Fetch&) const { return StreamKind::kDmaIn; }
  StreamKind operator()(const instr::LoadRequests&) const { return StreamKind::kDmaIn; }
  StreamKind operator()(const instr::LoadVectors&) const { return StreamKind::kDmaIn; }
  StreamKind operator()(const auto&) const { return StreamKind::kVector; }
} constexpr kStream;
static_assert(std::variant_size_v<InstrOpKinds> == 65, "which stream runs the new op?");

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> in_place(const GraphOp& op) {
  return std::visit(kInPlace, op);
}

StreamKind stream_of(const InstrOp& op) { return std::visit(kStream, op); }

}  // namespace hyperrun

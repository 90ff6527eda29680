// What instructions ask of the machine, one overload an op. Formulas count multiplications and
// additions as two operations, as the literature does.
#include "runtime/base/overloaded.h"
#include "runtime/ir/program.h"

namespace hyperrun {
namespace {

// Causal, or a step of a causal ring: half of the seq x seq scores; else all of them. Forward is a product of
// the heads' width and one of the values', backward three (the scores again) and two.
std::int64_t attention_flops(const auto& o, std::int64_t of_heads, std::int64_t of_values) {
  const std::int64_t scores = o.batch * o.kv_heads * o.group * o.seq * o.seq;
  return (o.causal ? 1 : 2) * scores * (of_heads * o.head_dim + of_values * o.value_dim);
}

// Of sequences that have grown to `context`: before this pass all but its own tokens are in the cache. Each
// part has as many of them.
std::int64_t cached_flops(const instr::CachedAttention& o) {
  const std::int64_t keys = 2 * (o.context - o.seq) + o.seq;  // on average, twice
  return o.batch * o.kv_heads * o.group * o.seq * keys * (o.head_dim + o.value_dim) / o.parts;
}
// What it touches of the caches, which it takes whole: what is there is read, and its own tokens written.
Bytes cached_bytes(const instr::CachedAttention& o, DType dtype) {
  return Bytes(o.batch * o.context / o.parts * o.kv_heads * (o.head_dim + o.value_dim) * size_of(dtype));
}

// What an operand moves through HBM, once. Of a tile: its share of the rows, as when all experts are chosen
// alike, and the matrices of the experts that then have rows in it.
Bytes traffic(const Instr& instr, const Operand& operand) {
  const RowTile tile = tile_of(instr);
  if (!operand.tile.whole()) return operand.bytes / operand.tile.count;
  const auto matrices = [&](std::int64_t groups) {
    return Bytes(operand.bytes.value / groups * groups_in(tile, groups));
  };
  if (tile.whole()) return operand.bytes;
  if (const auto* o = std::get_if<instr::GroupedGemm>(&instr.op); o != nullptr && operand == instr.in[1])
    return matrices(o->groups);
  if (const auto* o = std::get_if<instr::GroupedOuter>(&instr.op); o != nullptr && operand == instr.out[0])
    return matrices(o->groups);
  return operand.bytes;
}

// A box' elements, read and written; what lies between them is left alone.
Bytes box_bytes(const instr::StridedCopy& o, const Instr& instr) {
  std::int64_t n = 1;
  for (const std::int64_t size : o.size) n *= size;
  return Bytes(n * (size_of(instr.in[0].dtype) + size_of(instr.out[0].dtype)));
}

// One slot of a port, read and written.
Bytes slot_bytes(const auto& o, const Instr& instr) {
  return Bytes(o.n * (size_of(instr.in[0].dtype) + size_of(instr.out[0].dtype)));
}

// Bandwidth-optimal volume that leaves one device.
std::int64_t wire_bytes(const instr::Collective& c, const Mesh& mesh) {
  const std::int64_t p = mesh.size(c.axes);
  const std::int64_t n = c.outer * c.inner * c.from * c.middle * c.to * size_of(c.dtype);
  switch (c.kind) {
    case instr::CollectiveKind::kAllReduce: return 2 * n * (p - 1) / p;
    case instr::CollectiveKind::kReduceScatter:
    case instr::CollectiveKind::kAllGather:
    case instr::CollectiveKind::kAllToAll:
    case instr::CollectiveKind::kAllToAllV: return n * (p - 1);
    case instr::CollectiveKind::kShift:
    case instr::CollectiveKind::kSend: return n;
    case instr::CollectiveKind::kRecv: return 0;
  }
  return 0;
}

}  // namespace

Work work(const Instr& instr, const Mesh& mesh) {
  Work w;
  w.flops =
      Flops(std::visit(Overloaded{
                           [](const instr::Gemm& o) { return 2 * o.m * o.n * o.k; },
                           [](const instr::Attention& o) { return attention_flops(o, 1, 1); },
                           [](const instr::AttentionGrad& o) { return attention_flops(o, 3, 2); },
                           [](const instr::CachedAttention& o) { return cached_flops(o); },
                           [](const instr::GroupedGemm& o) { return 2 * o.rows * o.n * o.k; },
                           [](const instr::GroupedOuter& o) { return 2 * o.rows * o.m * o.n; },
                           [](const instr::Route& o) { return (4 + o.choices) * o.tokens * o.experts; },
                           [](const instr::RouteGrad& o) { return 8 * o.tokens * o.experts; },
                           [](const instr::Combine& o) { return 2 * o.tokens * o.choices * o.width; },
                           [](const instr::CombineGrad& o) { return 3 * o.tokens * o.choices * o.width; },
                           [](const instr::AttentionStep& o) { return attention_flops(o, 1, 1); },
                           [](const instr::AttentionStepGrad& o) { return attention_flops(o, 3, 2); },
                           [](const instr::RowSums& o) { return o.rows * o.width; },
                           [](const instr::RowSquares& o) { return (o.centered ? 3 : 2) * o.rows * o.width; },
                           [](const instr::Norm& o) { return (o.centered ? 4 : 2) * o.rows * o.width; },
                           [](const instr::NormDots& o) { return (o.centered ? 5 : 3) * o.rows * o.width; },
                           [](const instr::NormGrad& o) { return (o.centered ? 8 : 6) * o.rows * o.width; },
                           [](const instr::Rope& o) { return 3 * o.batch * o.seq * o.heads * o.turned; },
                           [](const instr::JoinGrad& o) { return o.rows * o.repeat * o.right; },
                           [](const instr::Gelu& o) { return 9 * o.n; },
                           [](const instr::GeluGrad& o) { return 17 * o.n; },
                           [](const instr::SwiGlu& o) { return 6 * o.n; },
                           [](const instr::SwiGluGrad& o) { return 12 * o.n; },
                           [](const instr::Add& o) { return o.repeat * o.n; },
                           [](const instr::SumRows& o) { return o.rows * o.width; },
                           [](const instr::Cast& o) { return o.n; },
                           [](const instr::Accumulate& o) { return o.accumulate ? o.n : 0; },
                           [](const instr::SoftmaxStats& o) { return 4 * o.rows * o.width; },
                           [](const instr::CrossEntropyGrad& o) { return 3 * o.rows * o.width; },
                           // A logarithm, and an exponential of the ratio and of the divergence each.
                           [](const instr::TokenLogProbs& o) { return 4 * o.rows; },
                           [](const instr::PolicyLoss& o) { return 20 * o.rows; },
                           [](const instr::PolicyGrad& o) { return 12 * o.rows; },
                           [](const instr::AdamW& o) { return 14 * o.n; },
                           [](const instr::EmbeddingGrad& o) { return o.rows * o.width; },
                           [](const auto&) { return std::int64_t{0}; },
                       },
                       instr.op));
  if (beyond_hbm(instr.op) != Tier::kHbm) {
    w.hbm = w.moved = instr.in[0].bytes;
    return w;
  }
  each_use(instr, [&](const Operand& operand, bool read, bool write) {
    w.hbm += traffic(instr, operand) * ((read ? 1 : 0) + (write ? 1 : 0));
  });
  if (const auto* cached = std::get_if<instr::CachedAttention>(&instr.op)) {
    w.hbm = cached_bytes(*cached, instr.in[4].dtype);
    for (const std::size_t i : {0, 1, 2}) w.hbm += instr.in[i].bytes;
    w.hbm += instr.out[0].bytes;
  }
  if (const auto* box = std::get_if<instr::StridedCopy>(&instr.op)) w.hbm = box_bytes(*box, instr);
  if (const auto* port = std::get_if<instr::LoadPort>(&instr.op)) w.hbm = slot_bytes(*port, instr);
  if (const auto* port = std::get_if<instr::StorePort>(&instr.op)) w.hbm = slot_bytes(*port, instr);
  if (const auto* collective = std::get_if<instr::Collective>(&instr.op))
    w.wire = Bytes(wire_bytes(*collective, mesh));
  return w;
}

}  // namespace hyperrun

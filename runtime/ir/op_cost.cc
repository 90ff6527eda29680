// The work of instructions, with one overload for each op. A multiplication and an addition count as two
// operations, as in the literature.
#include "runtime/base/any_of.h"
#include "runtime/base/overloaded.h"
#include "runtime/ir/program.h"
#include "runtime/ir/score_pairs.h"
#include "runtime/ir/touched.h"

namespace hyperrun {
namespace {

// Causal attention, or a step of a causal ring, has half of the seq x seq scores, or fewer with a window;
// else all of them are needed. The forward pass is one product of depth head_dim (`of_heads`) and one of
// value_dim (`of_values`). The backward pass is three, which include the scores again, and two.
std::int64_t attention_flops(const auto& o, const Mesh& mesh, std::int64_t of_heads, std::int64_t of_values) {
  return o.batch * o.kv_heads * o.group * double_pairs_of(o, mesh) *
         (of_heads * o.head_dim + of_values * o.value_dim);
}

// Cached attention is counted for sequences of full length: all of `context` but this pass's tokens are in
// the cache. Each part has an equal share of them.
std::int64_t cached_flops(const instr::CachedAttention& o) {
  return o.batch * o.kv_heads * o.group * double_pairs(o.context, o.seq, o.window) *
         (o.head_dim + o.value_dim) / o.parts;
}
// The bytes that one device sends with a bandwidth-optimal algorithm.
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
  w.flops = Flops(std::visit(
      Overloaded{
          [](const instr::Gemm& o) { return 2 * o.m * o.n * o.k; },
          [&](const instr::Attention& o) { return attention_flops(o, mesh, 1, 1); },
          [&](const instr::AttentionGrad& o) { return attention_flops(o, mesh, 3, 2); },
          [](const instr::CachedAttention& o) { return cached_flops(o); },
          [](const instr::GroupedGemm& o) { return 2 * o.rows * o.n * o.k; },
          [](const instr::GroupedOuter& o) { return 2 * o.rows * o.m * o.n; },
          [](const instr::Route& o) { return (4 + o.choices) * o.tokens * o.experts; },
          [](const instr::RouteGrad& o) { return 8 * o.tokens * o.experts; },
          [](const instr::Combine& o) { return 2 * o.tokens * o.choices * o.width; },
          [](const instr::CombineGrad& o) { return 3 * o.tokens * o.choices * o.width; },
          [&](const instr::AttentionStep& o) { return attention_flops(o, mesh, 1, 1); },
          [&](const instr::AttentionStepGrad& o) { return attention_flops(o, mesh, 3, 2); },
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
          // One logarithm; one exponential for the ratio and one for the divergence.
          [](const instr::TokenLogProbs& o) { return 4 * o.rows; },
          [](const instr::PolicyLoss& o) { return 20 * o.rows; },
          [](const instr::PolicyGrad& o) { return 12 * o.rows; },
          [](const instr::AdamW& o) { return 14 * o.n; },
          [](const instr::EmbeddingGrad& o) { return o.rows * o.width; },
          // These copy, draw or look up, or compute too little to count.
          [](const AnyOf<instr::Positions, instr::Embedding, instr::RopeTable, instr::Join,
                         instr::RescaleSums, instr::TokenLoss, instr::SumSquares, instr::AddScalars,
                         instr::ClipFactor, instr::InitNormal, instr::Fill, instr::Copy, instr::StridedCopy,
                         instr::LoadBatch, instr::LoadRequests, instr::MergeParts, instr::SelectRow,
                         instr::Sample, instr::Dispatch, instr::Balance, instr::SumCounts, instr::Regroup,
                         instr::Collective, instr::Prefetch, instr::Store, instr::LoadSamples,
                         instr::Elements, instr::LoadVectors, instr::LoadPort, instr::StorePort,
                         instr::Fetch> auto&) { return std::int64_t{0}; },
      },
      instr.op));
  if (beyond_hbm(instr.op) != Tier::kHbm) {
    w.hbm = w.moved = moved_bytes(instr);
    return w;
  }
  each_use(instr, [&](const Operand& operand, bool read, bool write) {
    if (read) w.hbm += touched(instr, operand, false, mesh);
    if (write) w.hbm += touched(instr, operand, true, mesh);
  });
  if (const auto* collective = std::get_if<instr::Collective>(&instr.op))
    w.wire = Bytes(wire_bytes(*collective, mesh));
  return w;
}

}  // namespace hyperrun

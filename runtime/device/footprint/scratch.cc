#include "runtime/device/footprint/scratch.h"

#include "runtime/device/kernels/attention.h"
#include "runtime/device/kernels/cached_attention.h"
#include "runtime/device/kernels/sampling.h"
#include "runtime/device/kernels/zigzag_attention.h"

namespace hyperrun {
namespace {

kernels::AttentionShape shape_of(const auto& op, bool rounded) {
  return {.batch = op.batch,
          .seq = op.seq,
          .heads = op.kv_heads * op.group,
          .kv_heads = op.kv_heads,
          .head_dim = op.head_dim,
          .rounded = rounded,
          .value_dim = op.value_dim};
}

// The tables of a part of a sequence with a window.
std::int64_t tables(const auto& op) {
  return op.window > 0 && !op.ring.empty() ? kernels::window_tables_bytes(op.seq) : 0;
}

// The bytes of scratch that the kernel of each op needs.
struct Scratch {
  bool rounded;  // the instruction rounds its results

  std::int64_t operator()(const instr::Attention& op) const {
    return tables(op) + kernels::attention_scratch_bytes(shape_of(op, rounded));
  }
  std::int64_t operator()(const instr::AttentionGrad& op) const {
    return tables(op) + kernels::attention_backward_scratch_bytes(shape_of(op, rounded));
  }
  std::int64_t operator()(const instr::CachedAttention& op) const {
    return kernels::cached_attention_scratch_bytes(kernels::cached_shape_of(op, rounded));
  }
  // Scratch is for all keys, though a step may need only half of them.
  std::int64_t operator()(const instr::AttentionStep& op) const {
    return tables(op) + kernels::attention_scratch_bytes(shape_of(op, rounded));
  }
  std::int64_t operator()(const instr::AttentionStepGrad& op) const {
    return tables(op) + kernels::attention_backward_scratch_bytes(shape_of(op, rounded));
  }
  std::int64_t operator()(const instr::Sample& op) const {
    return kernels::sample_token_scratch_bytes(op.vocab);
  }
  std::int64_t operator()(const instr::TokenLoss&) const { return 4; }  // the sum over this micro-batch
  std::int64_t operator()(const instr::Route& op) const { return 8 * op.experts; }
  std::int64_t operator()(const instr::Dispatch& op) const { return 4 * op.experts; }
  std::int64_t operator()(const instr::Combine& op) const { return 4 * op.experts; }
  std::int64_t operator()(const instr::CombineGrad& op) const { return 4 * op.experts; }
  std::int64_t operator()(const auto&) const { return 0; }
};
static_assert(std::variant_size_v<InstrOpKinds> == 65, "does the kernel of the new op need scratch?");

}  // namespace

Bytes scratch_bytes(const Instr& instr) { return Bytes(std::visit(Scratch{rounds(instr)}, instr.op)); }

}  // namespace hyperrun

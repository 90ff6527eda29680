#include "runtime/cost/kernel_shape.h"

#include "runtime/base/any_of.h"
#include "runtime/base/overloaded.h"

namespace hyperrun {
namespace {

using Shape = std::optional<KernelShape>;

double number(std::int64_t n) { return static_cast<double>(n); }

bool is_forward(const Instr& instr) { return instr.pass == Pass::kForward; }

// The sum of one size over the products of a group.
template <class Op>
double sum(std::span<const Instr* const> kernel, std::int64_t Op::*size) {
  double total = 0;
  for (const Instr* instr : kernel) total += number(std::get<Op>(instr->op).*size);
  return total;
}

// A backward product with a transposed first operand makes a weight's gradient, any other an input's.
// Weights, and so their gradients, are [out, in].
Shape product(const instr::Gemm& o, std::span<const Instr* const> kernel) {
  using G = instr::Gemm;
  if (is_forward(*kernel.front()))
    return KernelShape{
        KernelKind::kProduct, KernelPass::kForward, {number(o.m), number(o.k), sum(kernel, &G::n)}};
  if (o.trans_a)
    return KernelShape{
        KernelKind::kProduct, KernelPass::kWeightGradient, {number(o.k), number(o.n), sum(kernel, &G::m)}};
  return KernelShape{
      KernelKind::kProduct, KernelPass::kInputGradient, {number(o.m), number(o.n), sum(kernel, &G::k)}};
}

Shape grouped(const instr::GroupedGemm& o, std::span<const Instr* const> kernel) {
  using G = instr::GroupedGemm;
  const double groups = number(groups_in(tile_of(*kernel.front()), o.groups)), rows = number(o.rows) / groups;
  if (is_forward(*kernel.front()))
    return KernelShape{
        KernelKind::kGrouped, KernelPass::kForward, {groups, rows, number(o.k), sum(kernel, &G::n)}};
  return KernelShape{
      KernelKind::kGrouped, KernelPass::kInputGradient, {groups, rows, number(o.n), sum(kernel, &G::k)}};
}

Shape outer(const instr::GroupedOuter& o, std::span<const Instr* const> kernel) {
  const double groups = number(groups_in(tile_of(*kernel.front()), o.groups));
  return KernelShape{KernelKind::kGrouped,
                     KernelPass::kWeightGradient,
                     {groups, number(o.rows) / groups, number(o.n), sum(kernel, &instr::GroupedOuter::m)}};
}

Shape attention(const auto& o, KernelPass pass) {
  if (!o.causal || o.window > 0) return {};
  return KernelShape{KernelKind::kAttention,
                     pass,
                     {number(o.batch), number(o.kv_heads * o.group), number(o.kv_heads), number(o.head_dim),
                      number(o.value_dim), number(o.seq)}};
}

Shape without_sizes(KernelKind kernel, const Instr& instr) {
  return KernelShape{kernel, is_forward(instr) ? KernelPass::kForward : KernelPass::kBackward, {}};
}

}  // namespace

std::optional<KernelShape> kernel_shape(std::span<const Instr* const> kernel) {
  const Instr& first = *kernel.front();
  return std::visit(
      Overloaded{
          [&](const instr::Gemm& o) { return product(o, kernel); },
          [&](const instr::GroupedGemm& o) { return grouped(o, kernel); },
          [&](const instr::GroupedOuter& o) { return outer(o, kernel); },
          [&](const AnyOf<instr::Attention, instr::AttentionStep> auto& o) {
            return attention(o, KernelPass::kForward);
          },
          [&](const AnyOf<instr::AttentionGrad, instr::AttentionStepGrad> auto& o) {
            return attention(o, KernelPass::kBackward);
          },
          [&](const AnyOf<instr::Dispatch, instr::Combine, instr::CombineGrad, instr::Regroup> auto&) {
            return without_sizes(KernelKind::kPermutation, first);
          },
          [&](const AnyOf<instr::SoftmaxStats, instr::CrossEntropyGrad> auto&) {
            return without_sizes(KernelKind::kCrossEntropy, first);
          },
          [](const auto&) { return Shape{}; },
      },
      first.op);
}

}  // namespace hyperrun

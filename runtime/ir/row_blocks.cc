#include "runtime/ir/row_blocks.h"

#include <algorithm>
#include <variant>

#include "runtime/base/overloaded.h"

namespace hyperrun {
namespace {

constexpr std::uint32_t kAll = ~0U;

constexpr std::uint32_t bits(std::initializer_list<int> list) {
  std::uint32_t set = 0;
  for (const int i : list) set |= 1U << i;
  return set;
}

using Rows = std::optional<ByRows>;

struct {
  Rows operator()(const instr::Gemm& o) const {
    return o.trans_a ? Rows() : Rows({o.m, bits({0}), bits({0})});
  }
  Rows operator()(const instr::Embedding& o) const { return Rows({o.rows, bits({0}), bits({0})}); }
  Rows operator()(const instr::RowSums& o) const { return Rows({o.rows, kAll, kAll}); }
  Rows operator()(const instr::RowSquares& o) const { return Rows({o.rows, kAll, kAll}); }
  Rows operator()(const instr::Norm& o) const { return Rows({o.rows, ~bits({1, 4}), kAll}); }
  Rows operator()(const instr::NormDots& o) const { return Rows({o.rows, ~bits({2}), kAll}); }
  Rows operator()(const instr::NormGrad& o) const { return Rows({o.rows, ~bits({2}), bits({0})}); }
  Rows operator()(const instr::Rope& o) const {
    return Rows({o.batch * o.seq, bits({0}), bits({0}), o.each ? o.batch * o.seq : o.seq});
  }
  Rows operator()(const instr::Join& o) const { return Rows({o.rows, kAll, kAll}); }
  Rows operator()(const instr::JoinGrad& o) const { return Rows({o.rows, kAll, kAll}); }
  Rows operator()(const instr::Gelu&) const { return Rows({0, kAll, kAll}); }
  Rows operator()(const instr::GeluGrad&) const { return Rows({0, kAll, kAll}); }
  Rows operator()(const instr::SwiGlu& o) const { return o.groups > 0 ? Rows() : Rows({0, kAll, kAll}); }
  Rows operator()(const instr::SwiGluGrad& o) const { return o.groups > 0 ? Rows() : Rows({0, kAll, kAll}); }
  Rows operator()(const instr::Add& o) const {
    return o.repeat > 1 ? Rows({o.repeat, bits({0}), kAll}) : Rows({0, kAll, kAll});
  }
  Rows operator()(const instr::Cast&) const { return Rows({0, kAll, kAll}); }
  Rows operator()(const instr::SoftmaxStats& o) const { return Rows({o.rows, kAll, kAll}); }
  Rows operator()(const instr::RescaleSums& o) const { return Rows({o.rows, kAll, kAll}); }
  Rows operator()(const instr::CrossEntropyGrad& o) const { return Rows({o.rows, kAll, kAll}); }
  // Correct for every op; one that treats rows by themselves just cannot be cut into tiles.
  Rows operator()(const auto&) const { return Rows(); }
} constexpr kRows;

}  // namespace

std::optional<ByRows> by_rows(const Instr& instr) {
  if (instr.scratch.buffer.valid() || !tile_of(instr).whole()) return std::nullopt;
  // A table with more positions than these begins at another position.
  if (const auto* rope = std::get_if<instr::Rope>(&instr.op))
    if (instr.in[1].bytes !=
        Bytes((rope->each ? rope->batch : 1) * rope->seq * rope->turned * size_of(DType::kF32)))
      return std::nullopt;
  return std::visit(kRows, instr.op);
}

void take_rows(InstrOp& op, std::int64_t part, std::int64_t whole) {
  const auto take = [&](std::int64_t& n) { n = n * part / whole; };
  std::visit(Overloaded{
                 [&](instr::Gemm& o) { take(o.m); },
                 [&](instr::Rope& o) {
                   o.seq *= o.batch;
                   o.batch = 1;
                   take(o.seq);
                 },
                 [&](instr::Add& o) { take(o.repeat > 1 ? o.repeat : o.n); },
                 [&](auto& o) {
                   if constexpr (requires { o.rows; })
                     take(o.rows);
                   else if constexpr (requires { o.n; })
                     take(o.n);
                 },
             },
             op);
}

void add_to_sums_over_rows(InstrOp& op) {
  if (auto* norm = std::get_if<instr::NormGrad>(&op)) norm->accumulate = true;
}

std::int64_t blocks_of(const Instr& instr) {
  std::int64_t blocks = 0;
  for (const auto* list : {&instr.in, &instr.out})
    for (const Operand& o : *list) blocks = std::max(blocks, o.tile.blocks);
  return blocks;
}

}  // namespace hyperrun

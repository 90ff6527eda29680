#include "runtime/ir/touched.h"

#include <algorithm>

#include "runtime/base/overloaded.h"

namespace hyperrun {
namespace {

// The bytes of a tile's rows. For rows of experts this is an even share of the expected rows.
Bytes share_of_tile(const Operand& operand) {
  const Bytes all = operand.bytes - operand.empty;
  const RowTile& tile = operand.tile;
  if (tile.whole()) return all;
  return tile.blocks == 0 ? all / tile.count : Bytes(all.value * tile.row_count() / tile.rows);
}

// A visitor of ops that touch only a part of an operand, which follows from their sizes. All other ops touch
// the whole operand.
class TouchedOperand {
 public:
  TouchedOperand(const Instr& instr, const Operand& operand, bool write, const Mesh& mesh)
      : instr_(instr), operand_(operand), write_(write), mesh_(mesh) {}

  // Only the matrices of experts with rows are read.
  Bytes operator()(const instr::GroupedGemm& o) const {
    return is_in(1) ? matrices(o.groups, o.rows) : rest();
  }
  // Matrices of experts without rows are set to zero, unless the op accumulates.
  Bytes operator()(const instr::GroupedOuter& o) const {
    return is_out(0) ? matrices(o.groups, o.accumulate ? o.rows : o.groups) : rest();
  }
  // The op reads the positions before this pass from the pages, and writes those of this pass.
  Bytes operator()(const instr::CachedAttention& o) const {
    if (is_in(4)) return cached(o, seen_before(o), o.head_dim);
    if (is_in(5)) return cached(o, seen_before(o), o.value_dim);
    if (is_out(1)) return cached(o, o.seq, o.head_dim);
    if (is_out(2)) return cached(o, o.seq, o.value_dim);
    return rest();
  }
  Bytes operator()(const instr::Embedding& o) const { return is_in(1) ? rows_of_table(o) : rest(); }
  Bytes operator()(const instr::EmbeddingGrad& o) const {
    return is_out(0) && o.accumulate ? rows_of_table(o) : rest();
  }
  Bytes operator()(const instr::SelectRow& o) const {
    return is_in(0) ? elements(o.batch * o.width) : rest();
  }
  Bytes operator()(const instr::Copy& o) const { return is_in(0) ? operand_.bytes / o.parts : rest(); }
  Bytes operator()(const instr::StridedCopy& o) const {
    std::int64_t n = 1;
    for (const std::int64_t size : o.size) n *= size;
    return elements(n);
  }
  Bytes operator()(const instr::LoadPort& o) const { return elements(o.n); }
  Bytes operator()(const instr::StorePort& o) const { return elements(o.n); }
  Bytes operator()(const auto&) const { return rest(); }

 private:
  bool is_in(std::size_t i) const { return !write_ && i < instr_.in.size() && &operand_ == &instr_.in[i]; }
  bool is_out(std::size_t i) const { return i < instr_.out.size() && &operand_ == &instr_.out[i]; }
  Bytes rest() const { return share_of_tile(operand_); }
  Bytes elements(std::int64_t n) const { return Bytes(n * size_of(operand_.dtype)); }

  Bytes matrices(std::int64_t groups, std::int64_t rows) const {
    const std::int64_t used = std::min(groups_in(tile_of(instr_), groups), rows);
    return Bytes(operand_.bytes.value / groups * used);
  }
  // Positions before this pass that any of its queries sees.
  static std::int64_t seen_before(const instr::CachedAttention& o) {
    const std::int64_t all = o.context - o.seq;
    return o.window > 0 ? std::min(all, o.window - 1) : all;
  }
  Bytes cached(const instr::CachedAttention& o, std::int64_t positions, std::int64_t width) const {
    return elements(o.batch * positions * o.kv_heads * width / o.parts);
  }
  // Each of the devices that split the table looks up its share of the tokens.
  Bytes rows_of_table(const auto& o) const {
    return std::min(operand_.bytes, elements(o.rows * o.width / mesh_.size(o.first.axes)));
  }

  const Instr& instr_;
  const Operand& operand_;
  bool write_;
  const Mesh& mesh_;
};

}  // namespace

Bytes touched(const Instr& instr, const Operand& operand, bool write, const Mesh& mesh) {
  return std::visit(TouchedOperand(instr, operand, write, mesh), instr.op);
}

}  // namespace hyperrun

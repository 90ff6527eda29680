// A step of few layers whose sizes can be changed: the same operators, collectives and buffers in the same
// order, for other sizes of axes and micro-batches. So that thousands of sizes cost no thousand compilations,
// each instruction that is told apart by its node, but one of alike layers, is lowered again, and nothing
// else.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/graph.h"
#include "runtime/ir/program.h"

namespace hyperrun {

class SizedStep {
 public:
  // `training`: sharded_training's; kept.
  SizedStep(Graph training, const Mesh& mesh, int micro_batches);

  // `batch`: sequences of a micro-batch, all devices together.
  bool divides(const Mesh& mesh, std::int64_t batch) const;
  // To what it divides by.
  void resize(const Mesh& mesh, std::int64_t batch);

  const Graph& graph() const { return graph_; }
  DimId batch() const { return batch_; }
  // Of equal instructions only the first is of the present size: first_like().
  const Program& program() const { return program_; }
  std::size_t first_like(std::size_t instr) const { return like_[instr]; }
  // None in a buffer of scratch.
  TensorId tensor_in(std::size_t buffer) const { return contents_[buffer].tensor; }
  std::size_t node_of(std::size_t instr) const { return node_of_[instr]; }
  const Node& node(std::size_t instr) const { return graph_.nodes[node_of_[instr]]; }

 private:
  // What a buffer holds: a tensor, or the scratch of an instruction.
  struct Content {
    TensorId tensor;
    std::size_t instr = 0;
  };

  void find_kinds();
  void find_nodes();
  void find_alike();
  void find_contents();
  void resize_instr(std::size_t i);
  Bytes bytes_of(TensorId t);
  std::int32_t kind_of(TensorId t) const { return kind_of_[t.index()]; }

  Graph graph_;
  Program program_;
  DimId batch_;
  bool resized_ = false;
  std::vector<std::size_t> node_of_, like_;
  std::vector<Content> contents_;  // by buffer
  // Tensors of the same dimensions, layout and the like: of each kind one of them, and its bytes; -1: not
  // looked at since the last change.
  std::vector<std::int32_t> kind_of_;
  std::vector<TensorId> kinds_;
  std::vector<std::int64_t> bytes_;
};

}  // namespace hyperrun

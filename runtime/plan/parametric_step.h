// A lowered step of few layers whose sizes can be changed: the same operators, collectives and buffers, for
// other axis sizes and micro-batches. Thousands of sizes so need one compilation. Instructions of alike
// layers share a representative, which alone is lowered again on a change.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/compile/lowered.h"
#include "runtime/ir/graph.h"
#include "runtime/ir/program.h"

namespace hyperrun {

class ParametricStep {
 public:
  // `training`: the graph from sharded_training(). `each`: true if every instruction represents itself,
  // because costs of fused kernels depend on neighbours.
  ParametricStep(Graph training, const Mesh& mesh, int micro_batches, bool each = false);

  // Drops all but one representative of equal instructions and tensors, to save memory. Afterwards nodes are
  // those of the representatives, in order, and only sizes can change.
  void freeze();

  // True if the layouts divide for this mesh. `batch`: sequences of a micro-batch on all devices.
  bool divides(const Mesh& mesh, std::int64_t batch) const;
  // Changes the sizes of a frozen step. They must divide.
  void resize(const Mesh& mesh, std::int64_t batch);

  const Graph& graph() const { return graph_; }
  // Before freeze(): the tensor that will represent `t`.
  TensorId frozen(TensorId t) const {
    HR_CHECK(!kind_of_.empty(), "the step is frozen");
    return TensorId(kind_of_[t.index()]);
  }
  DimId batch() const { return batch_; }
  const Program& program() const { return program_; }
  // After freeze(): the index of the representative of an original instruction.
  std::size_t representative(std::size_t instr) const { return representative_[instr]; }
  std::size_t original_instrs() const { return representative_.size(); }  // before freeze()

  // Before freeze(): the tensor in a buffer; invalid for scratch.
  TensorId tensor_in(std::size_t buffer) const { return contents_[buffer].tensor; }
  std::size_t node_of(std::size_t instr) const { return static_cast<std::size_t>(origins_[instr].node); }
  // -1 if the instruction belongs to no micro-batch.
  int micro_batch_of(std::size_t instr) const { return origins_[instr].micro_batch; }
  const Node& node(std::size_t instr) const { return graph_.nodes[node_of(instr)]; }

 private:
  // Content of a buffer: a tensor, or the scratch of an instruction.
  struct Content {
    TensorId tensor;
    std::size_t instr = 0;  // index before freeze()
  };

  void find_kinds();
  void find_alike(bool each);
  void find_contents();
  void find_batch_dependence();
  void find_splits();
  void pad(const Mesh& mesh);
  void resize_instr(Instr& instr, const Node& node);
  Node to_kinds(const Node& node) const;
  Bytes bytes_of(TensorId t);  // of a frozen step

  Graph graph_;
  Program program_;
  DimId batch_;
  bool resized_ = false;
  std::vector<std::uint32_t> representative_;  // by original instruction
  std::vector<Content> contents_;              // by buffer
  // Until freeze(): origin of each instruction, and the representatives; kind of each tensor (same
  // dimensions, layout and format), and the first tensor of each kind.
  std::vector<Origin> origins_;
  std::vector<std::size_t> firsts_;
  std::vector<std::int32_t> kind_of_;
  std::vector<TensorId> kinds_;
  std::vector<std::int64_t> bytes_;  // by kind; -1: not known since the last resize()
  // True for kinds, and for representatives, whose sizes depend on the batch.
  std::vector<bool> kind_has_batch_, has_batch_;
  // All distinct splits of tensors.
  struct Split {
    DimId dim;
    AxisList axes;
    bool operator==(const Split&) const = default;
  };
  std::vector<Split> splits_;
};

}  // namespace hyperrun

// A step of few layers whose sizes can be changed: the same operators, collectives and buffers in the same
// order, for other sizes of axes and micro-batches. So that thousands of sizes cost no thousand compilations,
// of alike instructions, as those of alike layers are, one is lowered again, and nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/compile/lowered.h"
#include "runtime/ir/graph.h"
#include "runtime/ir/program.h"

namespace hyperrun {

class SizedStep {
 public:
  // `training`: sharded_training's; kept. `each`: instructions are not alike; it matters to others of its
  // kernel which one it is.
  SizedStep(Graph training, const Mesh& mesh, int micro_batches, bool each = false);

  // Once it is known what waits for what: of alike instructions and tensors the first alone stays, as nothing
  // else is looked at when sizes change, and thousands of steps are had at once. Nodes are those of the
  // instructions that stay, in their order.
  void settle();

  // `batch`: sequences of a micro-batch, all devices together.
  bool divides(const Mesh& mesh, std::int64_t batch) const;
  // To what it divides by. It is settled.
  void resize(const Mesh& mesh, std::int64_t batch);

  const Graph& graph() const { return graph_; }
  // Of one that is not settled: which tensor will stand for this one.
  TensorId settled(TensorId t) const {
    HR_CHECK(!kind_of_.empty(), "it is settled");
    return TensorId(kind_of_[t.index()]);
  }
  DimId batch() const { return batch_; }
  const Program& program() const { return program_; }
  // Of a settled Program: which of its instructions is like one of those that there were.
  std::size_t like(std::size_t instr) const { return like_[instr]; }
  std::size_t instrs() const { return like_.size(); }  // that there were

  // Of one that is not settled; no tensor is in a buffer of scratch.
  TensorId tensor_in(std::size_t buffer) const { return contents_[buffer].tensor; }
  std::size_t node_of(std::size_t instr) const { return static_cast<std::size_t>(origins_[instr].node); }
  // From 0; -1: of none.
  int micro_batch_of(std::size_t instr) const { return origins_[instr].micro_batch; }
  const Node& node(std::size_t instr) const { return graph_.nodes[node_of(instr)]; }

 private:
  // What a buffer holds: a tensor, or the scratch of an instruction.
  struct Content {
    TensorId tensor;
    std::size_t instr = 0;  // that there was
  };

  void find_kinds();
  void find_alike(bool each);
  void find_contents();
  void find_what_has_batch();
  void find_splits();
  void resize_instr(Instr& instr, const Node& node);
  Node of_kinds(const Node& node) const;
  Bytes bytes_of(TensorId t);  // of the settled graph

  Graph graph_;
  Program program_;
  DimId batch_;
  bool resized_ = false;
  std::vector<std::uint32_t> like_;  // by instruction that there was
  std::vector<Content> contents_;    // by buffer
  // Until it is settled: of instructions, and those that will stay; which tensors are of the same dimensions,
  // layout and the like, and of each kind the first.
  std::vector<Origin> origins_;
  std::vector<std::size_t> firsts_;
  std::vector<std::int32_t> kind_of_;
  std::vector<TensorId> kinds_;
  std::vector<std::int64_t> bytes_;  // by kind; -1: not looked at since the last change
  // Of kinds, and of the instructions that stay: what is the same for any size of the batch is not.
  std::vector<bool> kind_has_batch_, has_batch_;
  // Of all tensors, each once.
  struct Split {
    DimId dim;
    AxisList axes;
    bool operator==(const Split&) const = default;
  };
  std::vector<Split> splits_;
};

}  // namespace hyperrun

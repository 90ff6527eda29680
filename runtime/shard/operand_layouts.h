// The layouts of an operator's operands that follow from an assignment of mesh axes to dimensions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "runtime/ir/graph.h"
#include "runtime/shard/operator_rules.h"
#include "runtime/shard/token_axes.h"

namespace hyperrun {

// The axes that split each dimension of an operator, major first.
using Assignment = std::map<DimId, AxisList>;

struct TensorOperand {
  TensorId tensor;
  std::optional<Layout> layout;  // the current one of an input; the declared one of an output
  bool output = false;
  bool keep_partial = false;  // see OperatorRule
  std::size_t index = 0;      // among the inputs or outputs
};

class OperandLayouts {
 public:
  // The arguments outlive it. `completed`: weights whose gradients are completed in each micro-batch.
  OperandLayouts(const Graph& graph, const Mesh& mesh, const TokenAxes& tokens,
                 const std::set<std::string>& completed)
      : graph_(graph), mesh_(mesh), tokens_(tokens), completed_(completed) {}

  // The layout in which the operator takes an input.
  Layout input(const TensorOperand& o, const Assignment& assignment) const;
  // Whether an input's dimensions are already split like that.
  bool is_split_like_input(const TensorOperand& o, const Assignment& assignment) const;
  // The layout in which the operator leaves an output: partial over the axes of dimensions that only inputs
  // have.
  Layout output(const Node& node, const OperatorRule& rule, const TensorOperand& o,
                const Assignment& assignment) const;
  // The layout that a tensor gets, given its declared layout and the one that the operator leaves
  // (`natural`).
  //   State        as declared.
  //   Gradients    split like the weight, but partial until they are used.
  //   Activations  complete and split as declared. Axes that no rule names stay in place if they divide the
  //                rest.
  Layout wanted(TensorId t, const Layout& declared, const Layout& natural) const;

 private:
  Layout split(TensorId t, const Assignment& assignment) const;

  const Graph& graph_;
  const Mesh& mesh_;
  const TokenAxes& tokens_;
  const std::set<std::string>& completed_;
};

// The name of a gradient's weight: "embed" for "embed.grad2".
std::string weight_of(const Graph& graph, TensorId gradient);

}  // namespace hyperrun

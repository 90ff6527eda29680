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

// For each dimension of an operator the axes that split it, major first.
using Assignment = std::map<DimId, AxisList>;

struct TensorOperand {
  TensorId tensor;
  std::optional<Layout> layout;  // that it has (inputs) or shall have (declared outputs)
  bool output = false;
  bool as_it_lies = false;
  std::size_t index = 0;
};

class OperandLayouts {
 public:
  // All live as long. `completed`: weights whose gradients are completed in each micro-batch.
  OperandLayouts(const Graph& graph, const Mesh& mesh, const TokenAxes& tokens,
                 const std::set<std::string>& completed)
      : graph_(graph), mesh_(mesh), tokens_(tokens), completed_(completed) {}

  // Of an input.
  Layout taken(const TensorOperand& o, const Assignment& assignment) const;
  // Whether an input's dimensions are split so already.
  bool is_split_as_taken(const TensorOperand& o, const Assignment& assignment) const;
  // As the operator leaves it: partial over the axes of dimensions that only its inputs have.
  Layout output(const Node& node, const OperatorRule& rule, const TensorOperand& o,
                const Assignment& assignment) const;
  // State lies just as declared. A gradient lies as its weight, but stays partial until it is used. An
  // activation is complete, and split as declared; axes that no rule names stay where they came, if they
  // divide what is left.
  Layout wanted(TensorId t, const Layout& declared, const Layout& natural) const;

 private:
  Layout split(TensorId t, const Assignment& assignment) const;

  const Graph& graph_;
  const Mesh& mesh_;
  const TokenAxes& tokens_;
  const std::set<std::string>& completed_;
};

// "embed" of "embed.grad2".
std::string weight_of(const Graph& graph, TensorId gradient);

}  // namespace hyperrun

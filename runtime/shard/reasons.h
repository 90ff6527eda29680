// Texts for users that say why a tensor is redistributed.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/graph.h"
#include "runtime/shard/rules.h"

namespace hyperrun {

enum class Cause : std::uint8_t {
  kTaken,      // an operator needs its input in this layout
  kWeight,     // likewise for a weight, which may be stored in more parts than it is used in
  kScattered,  // a gradient is stored in more parts than it is computed in
  kGradient,   // a step's gradient is completed
  kUpdate,     // the optimizer's state and the weight have different layouts
  kDeclared,   // a rule declares the layout of an operator's result
  kReport,     // a result of the step is reported
};

struct Why {
  Cause cause;
  std::string_view user;  // the operator, or "output"
  // The declaration with the rules to name, may be null.
  //   kTaken: of the operator's result
  //   kWeight, kScattered, kDeclared: of the tensor
  //   kUpdate, kGradient: of the optimizer's state
  const Declaration* said_by = nullptr;
  TensorId shown = {};  // the tensor to name; invalid: the one that is redistributed
};

std::string reason(const Graph& graph, const Mesh& mesh, TensorId t, const Layout& from, const Layout& to,
                   const Why& why);

}  // namespace hyperrun

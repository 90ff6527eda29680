// Why a tensor is redistributed, in words for users: told by the pass that decides it.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/graph.h"
#include "runtime/shard/rules.h"

namespace hyperrun {

enum class Cause : std::uint8_t {
  kTaken,      // an operator takes its input so
  kWeight,     // the same of a weight, which may be stored in more parts than it is used in
  kScattered,  // a gradient is kept in more parts than it is made in
  kGradient,   // the gradient of a step is completed
  kUpdate,     // the optimizer's state lies otherwise than the weight
  kDeclared,   // a rule says how an operator's result lies
  kReport,     // a result of the step is told
};

struct Why {
  Cause cause;
  std::string_view user;                 // the operator, or "output"
  const Declaration* said_by = nullptr;  // kTaken: of what the operator makes, if it is known; kWeight,
                                         // kScattered, kDeclared: of the tensor; kUpdate, kGradient: of the
                                         // optimizer's state, if there is one
  TensorId shown = {};                   // the tensor that users know; invalid: the one that is redistributed
};

std::string reason(const Graph& graph, const Mesh& mesh, TensorId t, const Layout& from, const Layout& to,
                   const Why& why);

}  // namespace hyperrun

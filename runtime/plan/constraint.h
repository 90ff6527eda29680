// What somebody has settled of the strategy, so that the rest is searched: "tp=8", "schedule=1f1b,gpipe".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/dimensions.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

struct Constraint {
  std::string text;                  // as it was written
  std::size_t dimension = 0;         // of dimensions()
  std::vector<std::int32_t> values;  // of which a strategy has one

  bool met_by(const Strategy& s) const;
};

// Throws kUsage, at --only, where there is no such dimension or it cannot have such a value.
Constraint constraint_of(const std::string& text);

// Whether all that a search has settled by then, as Settled has it, is as it should be.
bool meets(std::span<const Constraint> constraints, const Strategy& s, Settled settled = Settled::kOrder);

}  // namespace hyperrun

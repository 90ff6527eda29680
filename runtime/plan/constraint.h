// Constraints of a user on the strategy, such as "tp=8" or "schedule=1f1b,gpipe". The planner searches the
// rest.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/dimensions.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

struct Constraint {
  std::string text;                  // as written by the user
  std::size_t dimension = 0;         // index in dimensions()
  std::vector<std::int32_t> values;  // allowed values

  bool met_by(const Strategy& s) const;
};

// Throws kUsage, at --only, for an unknown dimension or an impossible value.
Constraint constraint_of(const std::string& text);

// True if all constraints hold whose dimension is decided at `decided_at` or earlier.
bool meets(std::span<const Constraint> constraints, const Strategy& s,
           DecidedAt decided_at = DecidedAt::kOrder);

}  // namespace hyperrun

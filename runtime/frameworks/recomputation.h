// Recomputation as frameworks say it: all layers alike, the first of each chunk, or every n-th.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun::frameworks {

struct Recomputation {
  std::string policy = "none";  // or "selective" or "full"
  std::int32_t of_chunk = 0;    // so many first layers of each chunk, and no others; 0: all layers
  std::int32_t every = 1;       // only the layers n, 2n, ..., counted from 1

  bool operator==(const Recomputation&) const = default;
};

// `stages`: the layers of each stage of the pipeline, in the order of the forward pass.
std::vector<RecomputeSpec> recompute_specs(const Recomputation& r, const std::vector<std::int32_t>& stages);

// The inverse; nullopt if the layers recompute in no such way.
std::optional<Recomputation> recomputation_of(const std::vector<RecomputeSpec>& specs,
                                              const std::vector<std::int32_t>& stages);

}  // namespace hyperrun::frameworks

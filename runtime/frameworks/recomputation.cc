#include "runtime/frameworks/recomputation.h"

#include <algorithm>
#include <numeric>

namespace hyperrun::frameworks {
namespace {

std::vector<std::string> by_layer(const Recomputation& r, const std::vector<std::int32_t>& stages) {
  std::vector<std::string> list;
  for (const std::int32_t layers : stages)
    for (std::int32_t i = 0; i < layers; ++i) {
      const bool in_chunk = r.of_chunk == 0 || i < r.of_chunk;
      const bool in_turn = (static_cast<std::int32_t>(list.size()) + 1) % r.every == 0;
      list.push_back(in_chunk && in_turn ? r.policy : "none");
    }
  return list;
}

std::vector<std::string> by_layer(const std::vector<RecomputeSpec>& specs, std::int32_t layers) {
  std::vector<std::string> list(static_cast<std::size_t>(layers), "none");
  for (const RecomputeSpec& spec : specs)
    for (std::int32_t i = spec.first_layer; i <= spec.last_layer && i < layers; ++i)
      list[static_cast<std::size_t>(i)] = spec.policy;
  return list;
}

}  // namespace

std::vector<RecomputeSpec> recompute_specs(const Recomputation& r, const std::vector<std::int32_t>& stages) {
  std::vector<RecomputeSpec> specs;
  const std::vector<std::string> list = by_layer(r, stages);
  for (std::size_t first = 0, last; first < list.size(); first = last + 1) {
    for (last = first; last + 1 < list.size() && list[last + 1] == list[first];) ++last;
    if (list[first] != "none")
      specs.push_back({list[first], static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)});
  }
  return specs;
}

std::optional<Recomputation> recomputation_of(const std::vector<RecomputeSpec>& specs,
                                              const std::vector<std::int32_t>& stages) {
  const std::int32_t layers = std::accumulate(stages.begin(), stages.end(), 0);
  const std::vector<std::string> wanted = by_layer(specs, layers);
  const std::int32_t longest = stages.empty() ? 0 : *std::ranges::max_element(stages);
  for (const char* policy : {"none", "selective", "full"}) {
    if (by_layer({policy}, stages) == wanted) return Recomputation{policy};
    for (std::int32_t n = 1; n < longest; ++n)
      if (by_layer({policy, n}, stages) == wanted) return Recomputation{policy, n};
    for (std::int32_t n = 2; n <= 8; ++n)
      if (by_layer({policy, 0, n}, stages) == wanted) return Recomputation{policy, 0, n};
  }
  return std::nullopt;
}

}  // namespace hyperrun::frameworks

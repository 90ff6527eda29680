// A cache of redistribute(): layers are alike, so most calls repeat earlier ones.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/ir/graph.h"
#include "runtime/shard/redistribute.h"

namespace hyperrun {

class RedistributeMemo {
 public:
  // `graph` and `mesh` outlive it. `unshared`: see redistribute().
  RedistributeMemo(const Graph& graph, const Mesh& mesh, AxisSet unshared)
      : graph_(graph), mesh_(mesh), unshared_(unshared) {}

  const std::vector<RedistributionStep>& between(TensorId t, const Layout& from, const Layout& to);

 private:
  const Graph& graph_;
  const Mesh& mesh_;
  const AxisSet unshared_;
  std::unordered_map<std::string, std::vector<RedistributionStep>> known_;  // by the arguments as bytes
};

}  // namespace hyperrun

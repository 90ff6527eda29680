// What redistribute() has found, kept: layers are alike, and most questions have been asked before.
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
  // `graph` and `mesh` live as long; `apart`: see redistribute().
  RedistributeMemo(const Graph& graph, const Mesh& mesh, AxisSet apart)
      : graph_(graph), mesh_(mesh), apart_(apart) {}

  const std::vector<RedistributionStep>& between(TensorId t, const Layout& from, const Layout& to);

 private:
  const Graph& graph_;
  const Mesh& mesh_;
  const AxisSet apart_;
  std::unordered_map<std::string, std::vector<RedistributionStep>> known_;  // by the question, as bytes
};

}  // namespace hyperrun

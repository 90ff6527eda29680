// Rows of experts between the devices that have the tokens and those that have the experts: counts first, so
// that rows know where they belong, then the rows, over all mesh axes at once (Tensor::counts in
// runtime/ir/graph.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "runtime/ir/graph.h"
#include "runtime/shard/emitter.h"

namespace hyperrun {

class RowExchange {
 public:
  // `rule_about`: the place of what was said of rows or counts, for messages.
  RowExchange(const Graph& graph, const Mesh& mesh, Emitter& emit,
              std::function<std::string(TensorId)> rule_about)
      : graph_(graph), mesh_(mesh), emit_(emit), rule_about_(std::move(rule_about)) {}

  // Counts of rows in `layout`, whose experts are split over axes, and theirs are not. Throws kBadLayout
  // where such an axis splits neither batch nor sequence.
  TensorId counts_in(TensorId t, const Layout& layout);

  // Rows follow their counts, towards the experts or back to the tokens; `counts_in_layout` has these
  // counts (a function of this object has made them). Throws kBadLayout where there is no way.
  using CountsInLayout = std::function<TensorId(TensorId counts, const Layout& layout)>;
  TensorId rows_in(TensorId t, const Layout& layout, const std::string& user,
                   const CountsInLayout& counts_in_layout);

 private:
  struct Exchange {
    AxisList axes;
    TensorId before, of_sources;  // counts
  };

  TensorId exchange_rows(TensorId rows, const Exchange& e, bool back, const std::string& user);
  [[noreturn]] void refuse(TensorId t, const Layout& to) const;

  const Graph& graph_;
  const Mesh& mesh_;
  Emitter& emit_;
  std::function<std::string(TensorId)> rule_about_;
  std::map<std::int32_t, Exchange> exchange_;  // that has made these counts
};

}  // namespace hyperrun

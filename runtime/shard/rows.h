// Exchanges rows of experts between the devices of tokens and the devices of experts. Counts are exchanged
// first, so that the receivers know the rows' places; then the rows, over all mesh axes at once
// (Tensor::counts in runtime/ir/graph.h).
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
  // `rule_about(tensor)`: the rule that names the rows or counts, for errors.
  RowExchange(const Graph& graph, const Mesh& mesh, Emitter& emit,
              std::function<std::string(TensorId)> rule_about)
      : graph_(graph), mesh_(mesh), emit_(emit), rule_about_(std::move(rule_about)) {}

  // Returns the counts of rows in `layout`, which splits the experts; `t` does not. Throws kBadLayout if one
  // of these axes splits neither batch nor sequence in `t`.
  TensorId counts_in(TensorId t, const Layout& layout);

  // Returns rows in `layout`: sent to the experts or back to the tokens, like their counts.
  // `counts_in_layout` returns the counts, which counts_in() has made. Throws kBadLayout if that is
  // impossible.
  using CountsInLayout = std::function<TensorId(TensorId counts, const Layout& layout)>;
  TensorId rows_in(TensorId t, const Layout& layout, const std::string& user,
                   const CountsInLayout& counts_in_layout);

 private:
  struct Exchange {
    AxisList axes;
    TensorId before;      // counts on the tokens' devices
    TensorId of_sources;  // counts by source, on the experts' devices
  };

  TensorId exchange_rows(TensorId rows, const Exchange& e, bool back, const std::string& user);
  [[noreturn]] void refuse(TensorId t, const Layout& to) const;

  const Graph& graph_;
  const Mesh& mesh_;
  Emitter& emit_;
  std::function<std::string(TensorId)> rule_about_;
  std::map<std::int32_t, Exchange> exchange_;  // by the counts that it has made
};

}  // namespace hyperrun

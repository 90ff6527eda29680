#include "runtime/shard/rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::size_t kCountDims = 3;  // experts, batch, seq: the dimensions that counts and rows share

Layout of_counts(const Layout& rows) {
  return {{rows.dims.begin(), rows.dims.begin() + kCountDims}, {}, Reduction::kSum};
}

}  // namespace

TensorId RowExchange::counts_in(TensorId t, const Layout& layout) {
  const AxisList& axes = layout.dims[0];
  Layout next = graph_.layouts[t.index()];
  std::string way;
  for (const AxisId a : axes) {
    const int from = next.dim_of(a);
    if (from != 1 && from != 2) refuse(t, layout);
    next.dims[static_cast<std::size_t>(from)].erase_if([&](AxisId b) { return b == a; });
    way += "." + std::to_string(a);
  }
  next.dims[0] = axes;
  if (axes.empty() || next != layout) refuse(t, layout);
  Tensor of_sources = graph_[t];
  of_sources.cls = TensorClass::kExchanged;
  of_sources.name += "@sources" + way;
  of_sources.vectors = static_cast<std::int32_t>(mesh_.size(axes));
  const TensorId matrix = emit_.add(std::move(of_sources), next);
  emit_.append(graph_[t].name + ".ExchangeCounts", op::ExchangeCounts{axes}, {t}, {matrix});
  const TensorId counts = emit_.moved(t, next, "@experts" + way);
  emit_.append(graph_[t].name + ".SumCounts", op::SumCounts{}, {matrix}, {counts});
  exchange_[counts.value] = {axes, t, matrix};
  return counts;
}

TensorId RowExchange::rows_in(TensorId t, const Layout& layout, const std::string& user,
                              const CountsInLayout& counts_in_layout) {
  TensorId at = t;
  if (const Layout from = graph_.layouts[t.index()]; !from.partial.empty() && layout.partial.empty()) {
    at = emit_.moved(t, Layout{from.dims, {}, Reduction::kSum}, "@" + user);
    emit_.append(graph_[t].name + ".AllReduce", op::AllReduce{mesh_.list(from.partial), from.reduction}, {t},
                 {at});
  }
  const Layout from = graph_.layouts[at.index()];
  if (from.partial != layout.partial ||
      !std::equal(from.dims.begin() + kCountDims, from.dims.end(), layout.dims.begin() + kCountDims))
    refuse(t, layout);
  const bool back = layout.dims[0].size() < from.dims[0].size();
  const Layout far = of_counts(back ? from : layout), near = of_counts(back ? layout : from);
  const TensorId counts = counts_in_layout(graph_[t].counts, far);
  if (graph_.layouts[counts.index()] == near) return at;
  const auto e = exchange_.find(counts.value);
  if (e == exchange_.end() || graph_.layouts[e->second.before.index()] != near) refuse(t, layout);
  return exchange_rows(at, e->second, back, user);
}

TensorId RowExchange::exchange_rows(TensorId rows, const Exchange& e, bool back, const std::string& user) {
  const Layout here = graph_.layouts[rows.index()];
  Layout next = here;
  const Layout& counts = graph_.layouts[(back ? e.before : e.of_sources).index()];
  std::copy_n(counts.dims.begin(), kCountDims, next.dims.begin());
  const std::string name = graph_[rows].name;
  const TensorId first = emit_.moved(rows, back ? here : next, "@" + user);
  const TensorId second = emit_.moved(rows, next, "@" + user);
  const auto exchange = [&](TensorId from, TensorId to) {
    emit_.append(name + ".ExchangeRows", op::ExchangeRows{e.axes, back}, {from, e.before, e.of_sources},
                 {to});
  };
  const auto regroup = [&](TensorId from, TensorId to) {
    emit_.append(name + ".Regroup", op::Regroup{back}, {from, e.of_sources}, {to});
  };
  if (back) {
    regroup(rows, first);
    exchange(first, second);
  } else {
    exchange(rows, first);
    regroup(first, second);
  }
  return second;
}

void RowExchange::refuse(TensorId t, const Layout& to) const {
  throw Error(Code::kBadLayout,
              fmt::format("{} cannot go from {} to {}", graph_[t].name,
                          to_string(graph_.layouts[t.index()], mesh_), to_string(to, mesh_)))
      .at(rule_about_(t))
      .legal("experts split over axes that split the batch or the sequence")
      .fix(
          "split the tokens over these axes as well (dp, sp, cp; the passes of a generation split no "
          "sequence), or "
          "the experts over others; let rules name "
          "the weights (layers.*.experts.gate, .up and .down), from which the layouts of rows and counts "
          "follow");
}

}  // namespace hyperrun

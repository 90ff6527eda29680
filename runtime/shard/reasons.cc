#include "runtime/shard/reasons.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"

namespace hyperrun {
namespace {

class ReasonText {
 public:
  ReasonText(const Graph& graph, const Mesh& mesh, TensorId t, const Layout& from, const Layout& to,
             const Why& why)
      : graph_(graph), mesh_(mesh), t_(t), from_(from), to_(to), why_(why) {
    for (AxisId a : mesh.list(from.partial))
      if (!to.partial.has(a)) completed_.push_back(a);
    for (AxisId a = 0; a < mesh.rank(); ++a) {
      if (to.dim_of(a) >= 0 && to.dim_of(a) != from.dim_of(a)) gained_.push_back(a);
      if (from.dim_of(a) >= 0 && to.dim_of(a) < 0) lost_.push_back(a);
    }
  }

  std::string text() const {
    switch (why_.cause) {
      case Cause::kTaken: return taken();
      case Cause::kWeight: return weight();
      case Cause::kScattered: return summed() + " in each micro-batch, kept " + kept();
      case Cause::kGradient: return gradient();
      case Cause::kUpdate: return update();
      case Cause::kDeclared: return declared();
      case Cause::kReport: return graph_[t_].name + " is reported: summed over " + over(completed_);
    }
    return {};
  }

 private:
  std::string taken() const {
    const std::string user(why_.user);
    if (completed_.empty()) return user + " takes " + changes_as_said();
    return std::string("partial ") + (from_.reduction == Reduction::kSum ? "sums" : "maxima") + " over " +
           over(completed_) + " are completed for " + user +
           (from_.dims == to_.dims ? "" : ", which takes " + changes_as_said());
  }

  // The changes, with the rules (if any) that put the axes on the operator's result.
  std::string changes_as_said() const {
    const std::string by = said(gained_);
    return changes() + (by.empty() ? "" : " (" + by + ")");
  }

  std::string weight() const {
    if (to_.dims != why_.said_by->used->dims || lost_.empty()) return taken();
    return "weight gathered to be used, stored over " + with_origins(lost_);
  }

  std::string summed() const {
    return completed_.empty() ? "gradient: brought" : "gradient: summed over " + over(completed_);
  }

  std::string kept() const { return gained_.empty() ? "as its weight is" : "over " + with_origins(gained_); }

  std::string gradient() const {
    if (from_.dims == to_.dims) return summed() + ", kept " + kept();
    return summed() + " to where the optimizer's state lies, " +
           (gained_.empty() ? changes() : "over " + with_origins(gained_));
  }

  // The gradient moves to the layout of the state, the updated weight back.
  std::string update() const {
    const AxisList& axes = gained_.empty() ? lost_ : gained_;
    return "update: the optimizer's state lies " +
           (axes.empty() ? "otherwise" : "over " + with_origins(axes));
  }

  std::string declared() const {
    const TensorId shown = why_.shown.valid() ? why_.shown : t_;
    std::string parts;
    for (std::size_t d = 0; d < to_.dims.size(); ++d)
      if (!to_.dims[d].empty() && to_.dims[d] != from_.dims[d])
        parts += (parts.empty() ? "split over " : " and over ") + over(to_.dims[d]) + " along " + dim(d);
    if (parts.empty()) parts = from_.dims == to_.dims ? "complete" : changes();
    const std::string by = said(gained_);  // if empty, the rule that named the tensor last is told
    return "declared: " + (by.empty() ? why_.said_by->origin : by) + " says " + graph_[shown].name + " is " +
           parts;
  }

  // The dimensions that change: "seq whole, kv_heads over tp".
  std::string changes() const {
    std::vector<std::string> list;
    for (std::size_t d = 0; d < to_.dims.size(); ++d) {
      if (to_.dims[d] == from_.dims[d]) continue;
      list.push_back(to_.dims[d].empty() ? dim(d) + " whole"
                                         : fmt::format("{} over {}", dim(d), over(to_.dims[d])));
    }
    return joined(list);
  }

  // The rules that put the axes where they are.
  std::string said(const AxisList& axes) const {
    if (why_.said_by == nullptr) return {};
    std::set<std::string> known;
    for (AxisId a : axes) {
      const auto said = why_.said_by->axis_origins.find(a);
      if (said != why_.said_by->axis_origins.end()) known.insert(said->second);
    }
    return joined(known);
  }

  std::string with_origins(const AxisList& axes) const {
    const std::string by = said(axes);
    return over(axes) + (by.empty() ? "" : " (" + by + ")");
  }

  std::string over(const AxisList& axes) const { return mesh_.to_string(axes); }
  const std::string& dim(std::size_t d) const { return graph_[graph_[t_].dims[d]].name; }

  const Graph& graph_;
  const Mesh& mesh_;
  TensorId t_;
  const Layout& from_;
  const Layout& to_;
  const Why& why_;
  AxisList completed_;  // axes over which partial results are reduced
  AxisList gained_;     // axes that split another dimension than before
  AxisList lost_;       // axes that split no dimension any more
};

}  // namespace

std::string reason(const Graph& graph, const Mesh& mesh, TensorId t, const Layout& from, const Layout& to,
                   const Why& why) {
  return ReasonText(graph, mesh, t, from, to, why).text();
}

}  // namespace hyperrun

#include "runtime/shard/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/ir/presets.h"

namespace hyperrun {
namespace {

// The tensor's name in rules. Users see one gradient per weight, although each operator on the weight makes
// its own.
std::string_view name_in_rules(const Tensor& tensor) {
  constexpr std::string_view kGradient = ".grad";
  const std::string_view name = tensor.name;
  if (tensor.cls != TensorClass::kGradient) return name;
  return name.substr(0, name.rfind(kGradient) + kGradient.size());
}

// Thrown if an axis does not divide the dimension that it splits. `sizes` would divide it, but perhaps not
// the other dimensions that the axis splits.
struct NotDivisible {
  AxisId axis;
  std::vector<std::int64_t> sizes;
  Error error;
};

class Declarations {
 public:
  Declarations(const Graph& graph, const std::vector<Node>& nodes, const Mesh& mesh, Rules strictness)
      : graph_(graph),
        mesh_(mesh),
        strictness_(strictness),
        layouts_(graph.tensors.size()),
        declarations_(graph.tensors.size()),
        placed_(graph.tensors.size()) {
    for (std::size_t t = 0; t < layouts_.size(); ++t)
      if (is_state(graph.tensors[t].cls)) layouts_[t] = Layout::replicated(graph.tensors[t].dims.size());
    for (const Node& node : nodes)
      if (const auto* attention = std::get_if<op::Attention>(&node.op); attention && attention->causal)
        rings_.insert(&graph[node.outputs[0]]);
  }

  // Applies a rule to the tensors for which `wanted` is true. Returns how many it named.
  template <class Wanted>
  int apply(const ShardRule& rule, bool append, Wanted wanted) {
    int named = 0;
    for (std::size_t t = 0; t < layouts_.size(); ++t) {
      const Tensor& tensor = graph_.tensors[t];
      if (!wanted(tensor) || tensor.updates.valid() || !matches(rule.tensor, name_in_rules(tensor))) continue;
      if (rule.layout && !has_entry_per_dim(rule, tensor)) continue;
      ++named;
      if (!layouts_[t]) layouts_[t] = Layout::replicated(tensor.dims.size());
      const Layout before = *layouts_[t];
      for (const ShardRule::Dim& dim : rule.dims) split(rule, tensor, *layouts_[t], dim, append);
      if (rule.layout) replace(rule, *layouts_[t]);
      if (strictness_ == Rules::kThoseThatApply && !divides(tensor, *layouts_[t])) {
        layouts_[t] = before;
        continue;
      }
      check_axes(rule, tensor, *layouts_[t]);
      note_origin(rule, before, t);
    }
    return named;
  }

  // Refuses layouts that do not divide their tensors, at the first rule that is to blame. Only the last rules
  // about a dimension count, so this follows all of them. `rules` are those that have been applied.
  void check_sizes(const std::vector<ShardRule>& rules) const {
    if (strictness_ == Rules::kThoseThatApply) return;
    for (const ShardRule& rule : rules)
      for (std::size_t t = 0; t < layouts_.size(); ++t)
        for (const auto& [d, by] : placed_[t])
          if (by == &rule) check_size(rule, graph_.tensors[t], *layouts_[t], d);
  }

  // Declares that tensors are used in their present layouts, and "w.adam_m" and "w.grad" like w.
  void follow_weights() {
    used_ = layouts_;
    std::map<std::string, std::size_t> weights;
    for (std::size_t t = 0; t < layouts_.size(); ++t)
      if (graph_.tensors[t].cls == TensorClass::kWeight) weights.emplace(graph_.tensors[t].name, t);
    for (std::size_t t = 0; t < layouts_.size(); ++t) {
      const Tensor& tensor = graph_.tensors[t];
      if (tensor.cls != TensorClass::kGradient && tensor.cls != TensorClass::kOptimizer) continue;
      const auto weight = weights.find(tensor.name.substr(0, tensor.name.rfind('.')));
      if (weight == weights.end()) continue;
      layouts_[t] = used_[t] = used_[weight->second];
      declarations_[t] = declarations_[weight->second];
      placed_[t] = placed_[weight->second];
    }
  }

  std::vector<Declaration> take() const {
    std::vector<Declaration> all(layouts_.size());
    for (std::size_t t = 0; t < layouts_.size(); ++t) {
      const TensorId updates = graph_.tensors[t].updates;
      const std::size_t storage = updates.valid() ? updates.index() : t;
      all[t] = declarations_[storage];
      all[t].layout = layouts_[storage];
      const bool kept =
          graph_.tensors[t].cls == TensorClass::kWeight || graph_.tensors[t].cls == TensorClass::kGradient;
      all[t].used = kept ? used_[t] : all[t].layout;
    }
    return all;
  }

 private:
  void note_origin(const ShardRule& rule, const Layout& before, std::size_t t) {
    declarations_[t].origin = rule.origin;
    for (std::size_t d = 0; d < before.dims.size(); ++d)
      if (before.dims[d] != layouts_[t]->dims[d]) placed_[t][d] = &rule;
    for (AxisId a : mesh_.list(layouts_[t]->split_axes()))
      if (before.dim_of(a) != layouts_[t]->dim_of(a)) declarations_[t].axis_origins[a] = rule.origin;
  }

  // Splits a dimension. `append`: keep its present axes; otherwise they are replaced.
  void split(const ShardRule& rule, const Tensor& tensor, Layout& layout, const ShardRule::Dim& dim,
             bool append) {
    const AxisList axes = axes_of(rule, dim.axes);
    if (append && dim.dim == "*" && axes.size() > 1) return split_further(tensor, layout, axes);
    const std::size_t d = dim.dim == "*" ? first_divisible(tensor, layout, axes) : find_dim(tensor, dim.dim);
    if (d == tensor.dims.size()) return;  // no such dimension, or "*" and none divides: no change
    if (dim.dim == "*" && splits_already(layout, axes)) return;
    AxisList& list = layout.dims[d];
    if (append || dim.dim == "*")
      list.append(axes);
    else
      list = axes;
  }

  // Splits a tensor over those of the axes that do not split it yet: one dimension over all, so that it can
  // be gathered at once. If none divides, each axis splits the first dimension that it divides.
  void split_further(const Tensor& tensor, Layout& layout, AxisList axes) {
    const AxisSet split = layout.split_axes();
    axes.erase_if([&](AxisId a) { return split.has(a); });
    if (const std::size_t d = first_divisible(tensor, layout, axes); d < tensor.dims.size()) {
      layout.dims[d].append(axes);
      return;
    }
    for (const AxisId a : axes)
      if (const std::size_t d = first_divisible(tensor, layout, {a}); d < tensor.dims.size())
        layout.dims[d].push_back(a);
  }

  // A rule with "*" does not apply if one of its axes already splits another dimension (such as experts).
  static bool splits_already(const Layout& layout, const AxisList& axes) {
    const AxisSet split = layout.split_axes();
    return std::any_of(axes.begin(), axes.end(), [&](AxisId a) { return split.has(a); });
  }

  void replace(const ShardRule& rule, Layout& layout) const {
    for (std::size_t d = 0; d < layout.dims.size(); ++d) layout.dims[d] = axes_of(rule, rule.layout->dims[d]);
  }

  bool has_entry_per_dim(const ShardRule& rule, const Tensor& tensor) const {
    const std::size_t entries = rule.layout->dims.size();
    if (entries == tensor.dims.size()) return true;
    if (strictness_ == Rules::kThoseThatApply) return false;
    throw Error(Code::kBadLayout,
                fmt::format("the layout has {} {}, {} has {} dimensions", entries,
                            entries == 1 ? "entry" : "entries", tensor.name, tensor.dims.size()))
        .at(rule.origin)
        .legal("an entry for each of: " + names_of(tensor))
        .fix("write \"None\" for a dimension that is whole");
  }

  // An axis of one device splits nothing.
  AxisList axes_of(const ShardRule& rule, const std::vector<std::string>& names) const {
    AxisList axes;
    for (const std::string& name : names) axes.push_back(find_axis(rule, name));
    axes.erase_if([&](AxisId a) { return mesh_.size(a) == 1; });
    return axes;
  }

  std::string splits_of(const Tensor& tensor, const Layout& layout) const {
    std::vector<std::string> splits;
    for (std::size_t d = 0; d < layout.dims.size(); ++d)
      if (!layout.dims[d].empty())
        splits.push_back(fmt::format("{}:{}", graph_[tensor.dims[d]].name, mesh_.to_string(layout.dims[d])));
    return joined(splits);
  }

  std::string names_of(const Tensor& tensor) const {
    std::vector<std::string> names;
    for (DimId d : tensor.dims) names.push_back(graph_[d].name);
    return names.empty() ? "none: it is a scalar" : joined(names);
  }

  AxisId find_axis(const ShardRule& rule, const std::string& name) const {
    const AxisId a = mesh_.find(name);
    if (a >= 0) return a;
    std::vector<std::string> names;
    for (const MeshAxis& axis : mesh_.axes) names.push_back(axis.name);
    throw Error(Code::kBadLayout, "the mesh has no axis \"" + name + "\"")
        .at(rule.origin)
        .legal(joined(names))
        .fix("add the axis to parallel.mesh, or drop the rule");
  }

  // The index of a dimension; the number of dimensions if the tensor lacks it, as a rule may name many
  // tensors.
  std::size_t find_dim(const Tensor& tensor, const std::string& name) const {
    for (std::size_t d = 0; d < tensor.dims.size(); ++d)
      if (graph_[tensor.dims[d]].name == name) return d;
    return tensor.dims.size();
  }

  std::size_t first_divisible(const Tensor& tensor, const Layout& layout, const AxisList& axes) const {
    std::size_t d = 0;
    while (d < tensor.dims.size() &&
           graph_[tensor.dims[d]].size % (mesh_.size(layout.dims[d]) * mesh_.size(axes)) != 0)
      ++d;
    return d;
  }

  void check_axes(const ShardRule& rule, const Tensor& tensor, const Layout& layout) const {
    AxisSet seen;
    for (const AxisList& list : layout.dims)
      for (AxisId a : list) {
        if (seen.has(a))
          throw Error(Code::kBadLayout,
                      fmt::format("axis \"{}\" splits {} twice", mesh_.axes[static_cast<std::size_t>(a)].name,
                                  tensor.name))
              .at(rule.origin)
              .legal("each axis in one dimension of a tensor; so far " + splits_of(tensor, layout))
              .fix(
                  "declare the other dimension whole in the same rule (its dim without axes), or take "
                  "another axis");
        seen.add(a);
      }
  }

  void check_size(const ShardRule& rule, const Tensor& tensor, const Layout& layout, std::size_t d) const {
    const Dim& dim = graph_[tensor.dims[d]];
    const std::int64_t parts = mesh_.size(layout.dims[d]), pieces = pieces_for(parts, tensor, d);
    if (dim.pads || dim.size % pieces == 0) return;
    const AxisId axis = layout.dims[d].back();
    const std::int64_t others = parts / mesh_.size(axis);
    NotDivisible not_divisible{axis, {}, Error(Code::kBadLayout, "")};
    for (std::int64_t n = 1; n * others <= dim.size && n <= 4096; ++n)
      if (dim.size % pieces_for(n * others, tensor, d) == 0) not_divisible.sizes.push_back(n);
    const std::string fault =
        pieces == parts ? fmt::format(" does not divide {} = {}", dim.name, dim.size)
                        : fmt::format(" cuts {} = {} into {} chunks, two each, which do not divide it,",
                                      dim.name, dim.size, pieces);
    not_divisible.error =
        Error(Code::kBadLayout, fmt::format("{} of size {}{} of {}", mesh_.to_string(layout.dims[d]), parts,
                                            fault, tensor.name))
            .at(rule.origin)
            .fix(fmt::format(
                "give the mesh axis \"{}\" one of these sizes, or take a model whose {} is a multiple of {}",
                mesh_.axes[static_cast<std::size_t>(axis)].name, dim.name, pieces));
    throw not_divisible;
  }

  bool divides(const Tensor& tensor, const Layout& layout) const {
    for (std::size_t d = 0; d < layout.dims.size(); ++d)
      if (const Dim& dim = graph_[tensor.dims[d]]; !dim.pads && dim.size % mesh_.size(layout.dims[d]) != 0)
        return false;
    return true;
  }

  // Causal attention with a split sequence is ring attention, whose order has two chunks per device
  // (runtime/ir/zigzag.h).
  std::int64_t pieces_for(std::int64_t parts, const Tensor& tensor, std::size_t d) const {
    return d == 1 && parts > 1 && rings_.contains(&tensor) ? 2 * parts : parts;
  }

  const Graph& graph_;
  const Mesh& mesh_;
  Rules strictness_;
  std::vector<std::optional<Layout>> layouts_, used_;
  std::vector<Declaration> declarations_;  // origins by tensor
  // By tensor and dimension, the rule that said its present axes. The rules outlive this.
  std::vector<std::map<std::size_t, const ShardRule*>> placed_;
  std::set<const Tensor*> rings_;  // results of causal attention
};

// The graph, without nodes, as rules see it. If a step computes with copies of the weights, rules about
// weights apply to the copies, which are the tensors that are gathered. The weights belong to the optimizer
// and follow its moments.
Graph with_masters_of_the_optimizer(const Graph& graph) {
  Graph seen{graph.dims, graph.tensors, {}, {}, {}};
  for (const Node& node : graph.nodes) {
    if (!std::holds_alternative<op::Cast>(node.op) || node.phase != Phase::kBegin) continue;
    Tensor &weight = seen[node.inputs[0]], &copy = seen[node.outputs[0]];
    copy.name = weight.name;
    copy.cls = TensorClass::kWeight;
    weight.name += ".adam_m";
    weight.cls = TensorClass::kOptimizer;
  }
  return seen;
}

bool is_optimizer_state(const Tensor& t) { return t.cls == TensorClass::kOptimizer; }
bool is_weight_state(const Tensor& t) {
  return t.cls == TensorClass::kWeight || t.cls == TensorClass::kGradient || t.cls == TensorClass::kOptimizer;
}

}  // namespace

std::vector<ShardRule> expand_preset(std::string_view name, const Mesh& mesh) {
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) {
    names.push_back(preset.name);
    if (preset.name != name) continue;
    std::vector<ShardRule> rules;
    const auto there = [&](const PresetRule& r) { return mesh.find(r.axis) >= 0; };
    const bool choose = preset.any_axis && std::ranges::any_of(preset.rules, there);
    for (const PresetRule& r : preset.rules) {
      if (choose && !there(r)) continue;
      if (preset.any_axis && !rules.empty() && rules.back().tensor == r.tensor) {
        rules.back().dims.front().axes.emplace_back(r.axis);
        continue;
      }
      rules.push_back({std::string(r.tensor),
                       {{std::string(r.dim), {std::string(r.axis)}}},
                       "preset " + std::string(name),
                       r.stored});
    }
    return rules;
  }
  throw Error(Code::kBadLayout, fmt::format("there is no preset \"{}\"", name))
      .at("parallel.presets")
      .legal(joined(names));
}

bool matches(std::string_view pattern, std::string_view name) {
  // Compares the ends first, because most names differ there.
  for (; !pattern.empty() && pattern.back() != '*'; pattern.remove_suffix(1), name.remove_suffix(1))
    if (name.empty() || name.back() != pattern.back()) return false;
  std::size_t p = 0, n = 0, star = std::string_view::npos, mark = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

namespace {

// Refuses a rule with a dimension that none of its tensors has.
void require_dims(const Graph& graph, const ShardRule& rule) {
  for (const ShardRule::Dim& dim : rule.dims) {
    bool named = false;
    std::vector<std::string> names;
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.updates.valid() || !matches(rule.tensor, name_in_rules(tensor))) continue;
      named = true;
      for (DimId d : tensor.dims)
        if (std::ranges::find(names, graph[d].name) == names.end()) names.push_back(graph[d].name);
    }
    if (!named || dim.dim == "*" || std::ranges::find(names, dim.dim) != names.end()) continue;
    throw Error(Code::kBadLayout, rule.tensor + " has no dimension \"" + dim.dim + "\"")
        .at(rule.origin)
        .legal(names.empty() ? "none: these are scalars" : joined(names));
  }
}

std::vector<Declaration> declare(const Graph& graph, const Mesh& mesh, const ParallelSpec& parallel,
                                 Rules strictness) {
  std::vector<ShardRule> rules;
  for (const std::string& preset : parallel.presets)
    for (ShardRule& r : expand_preset(preset, mesh)) rules.push_back(std::move(r));
  const std::size_t own = rules.size();
  rules.insert(rules.end(), parallel.rules.begin(), parallel.rules.end());

  const Graph seen = with_masters_of_the_optimizer(graph);
  Declarations declared(seen, graph.nodes, mesh, strictness);
  std::vector<int> named(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (!rules[i].stored)
      named[i] += declared.apply(rules[i], i < own, [](const Tensor& t) { return !is_optimizer_state(t); });
  declared.check_sizes(rules);
  declared.follow_weights();
  for (std::size_t i = 0; i < rules.size(); ++i)
    named[i] += declared.apply(rules[i], i < own, rules[i].stored ? is_weight_state : is_optimizer_state);
  declared.check_sizes(rules);
  for (std::size_t i = own; i < rules.size() && strictness == Rules::kAllMustApply; ++i)
    if (named[i] == 0)
      throw Error(Code::kBadLayout, "the rule for \"" + rules[i].tensor + "\" names no tensor")
          .at(rules[i].origin)
          .fix("the names are listed by: hyperrun check JOB");
  for (std::size_t i = own; i < rules.size() && strictness == Rules::kAllMustApply; ++i)
    require_dims(seen, rules[i]);
  return declared.take();
}

// The sizes of the axis for which all rules hold; if there are none, those for which this rule holds.
std::string legal_sizes(const NotDivisible& not_divisible, const Graph& graph, const Mesh& mesh,
                        const ParallelSpec& parallel, Rules strictness) {
  std::vector<std::int64_t> legal;
  for (const std::int64_t size : not_divisible.sizes) {
    Mesh other = mesh;
    other.axes[static_cast<std::size_t>(not_divisible.axis)].size = static_cast<std::int32_t>(size);
    try {
      declare(graph, other, parallel, strictness);
      legal.push_back(size);
    } catch (const NotDivisible&) {
    } catch (const Error&) {
    }
  }
  return joined(legal.empty() ? not_divisible.sizes : legal);
}

}  // namespace

std::vector<Declaration> declare_layouts(const Graph& graph, const Mesh& mesh, const ParallelSpec& parallel,
                                         Rules strictness) {
  try {
    return declare(graph, mesh, parallel, strictness);
  } catch (NotDivisible& not_divisible) {
    throw not_divisible.error.legal(legal_sizes(not_divisible, graph, mesh, parallel, strictness));
  }
}

void pad_dims(Graph& graph, const Mesh& mesh, const std::vector<Declaration>& declared) {
  std::vector<std::int64_t> multiple(graph.dims.size(), 1);
  for (std::size_t t = 0; t < declared.size(); ++t)
    for (const auto& layout : {declared[t].layout, declared[t].used})
      for (std::size_t d = 0; layout && d < layout->dims.size(); ++d) {
        std::int64_t& of = multiple[graph.tensors[t].dims[d].index()];
        of = std::lcm(of, mesh.size(layout->dims[d]));
      }
  for (std::size_t d = 0; d < multiple.size(); ++d) {
    Dim& dim = graph.dims[d];
    if (!dim.pads) continue;
    dim.padding = (multiple[d] - dim.size % multiple[d]) % multiple[d];
    dim.size += dim.padding;
  }
}

}  // namespace hyperrun

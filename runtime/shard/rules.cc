#include "runtime/shard/rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/error.h"
#include "runtime/ir/presets.h"

namespace hyperrun {
namespace {

// A weight's gradient is one to users, though each operator that takes the weight makes a tensor of its own.
std::string_view name_in_rules(const Tensor& tensor) {
  constexpr std::string_view kGradient = ".grad";
  const std::string_view name = tensor.name;
  if (tensor.cls != TensorClass::kGradient) return name;
  return name.substr(0, name.rfind(kGradient) + kGradient.size());
}

// An axis does not divide what it splits; these of its sizes divide that, if perhaps not all else that it
// splits.
struct Misfit {
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
        said_(graph.tensors.size()) {
    for (std::size_t t = 0; t < layouts_.size(); ++t)
      if (is_state(graph.tensors[t].cls)) layouts_[t] = Layout::replicated(graph.tensors[t].dims.size());
    for (const Node& node : nodes)
      if (const auto* attention = std::get_if<op::Attention>(&node.op); attention && attention->causal)
        rings_.insert(&graph[node.outputs[0]]);
  }

  // Applies the rule to the tensors that `wanted` tells. Returns how many it named.
  template <class Wanted>
  int apply(const ShardRule& rule, bool append, Wanted wanted) {
    int named = 0;
    for (std::size_t t = 0; t < layouts_.size(); ++t) {
      const Tensor& tensor = graph_.tensors[t];
      if (!wanted(tensor) || tensor.updates.valid() || !matches(rule.tensor, name_in_rules(tensor))) continue;
      if (rule.layout && !has_an_entry_each(rule, tensor)) continue;
      ++named;
      if (!layouts_[t]) layouts_[t] = Layout::replicated(tensor.dims.size());
      const Layout before = *layouts_[t];
      for (const ShardRule::Dim& dim : rule.dims) split(rule, tensor, *layouts_[t], dim, append);
      if (rule.layout) replace(rule, *layouts_[t]);
      if (strictness_ == Rules::kThoseThatApply && !divides(tensor, *layouts_[t])) {
        layouts_[t] = before;
        continue;
      }
      for (std::size_t d = 0; d < layouts_[t]->dims.size(); ++d) check(rule, tensor, *layouts_[t], d);
      note_origin(rule, before, t);
    }
    return named;
  }

  // What the rules have said so far is how tensors are used: "w.adam_m" and "w.grad" lie as w is used.
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
      said_[t] = said_[weight->second];
    }
  }

  std::vector<Declaration> take() const {
    std::vector<Declaration> all(layouts_.size());
    for (std::size_t t = 0; t < layouts_.size(); ++t) {
      const TensorId updates = graph_.tensors[t].updates;
      const std::size_t storage = updates.valid() ? updates.index() : t;
      all[t] = said_[storage];
      all[t].layout = layouts_[storage];
      const bool kept =
          graph_.tensors[t].cls == TensorClass::kWeight || graph_.tensors[t].cls == TensorClass::kGradient;
      all[t].used = kept ? used_[t] : all[t].layout;
    }
    return all;
  }

 private:
  void note_origin(const ShardRule& rule, const Layout& before, std::size_t t) {
    said_[t].origin = rule.origin;
    for (AxisId a : mesh_.list(layouts_[t]->split_axes()))
      if (before.dim_of(a) != layouts_[t]->dim_of(a)) said_[t].axis_origins[a] = rule.origin;
  }

  // `append`: to the axes that are there already; else they are replaced.
  void split(const ShardRule& rule, const Tensor& tensor, Layout& layout, const ShardRule::Dim& dim,
             bool append) {
    const AxisList axes = axes_of(rule, dim.axes);
    if (append && dim.dim == "*" && axes.size() > 1) return split_further(tensor, layout, axes);
    const std::size_t d = dim.dim == "*" ? first_divisible(tensor, layout, axes) : find_dim(tensor, dim.dim);
    if (d == tensor.dims.size())
      return;  // no such dimension, or "*" and none divides: the tensor stays as it is
    if (dim.dim == "*" && splits_already(layout, axes)) return;
    AxisList& list = layout.dims[d];
    if (append || dim.dim == "*")
      list.append(axes);
    else
      list = axes;
  }

  // Over those of the axes that split nothing of it: one dimension over all, so that it is gathered at once,
  // or where none divides each over the first that does.
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

  // What an axis splits already in another dimension (experts, say) "*" leaves so.
  static bool splits_already(const Layout& layout, const AxisList& axes) {
    const AxisSet split = layout.split_axes();
    return std::any_of(axes.begin(), axes.end(), [&](AxisId a) { return split.has(a); });
  }

  void replace(const ShardRule& rule, Layout& layout) const {
    for (std::size_t d = 0; d < layout.dims.size(); ++d) layout.dims[d] = axes_of(rule, rule.layout->dims[d]);
  }

  bool has_an_entry_each(const ShardRule& rule, const Tensor& tensor) const {
    const std::size_t entries = rule.layout->dims.size();
    if (entries == tensor.dims.size()) return true;
    if (strictness_ == Rules::kThoseThatApply) return false;
    throw Error(Code::kBadLayout, "the layout has " + std::to_string(entries) +
                                      (entries == 1 ? " entry, " : " entries, ") + tensor.name + " has " +
                                      std::to_string(tensor.dims.size()) + " dimensions")
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

  std::string words_of(const Tensor& tensor, const Layout& layout) const {
    std::string words;
    for (std::size_t d = 0; d < layout.dims.size(); ++d)
      if (!layout.dims[d].empty())
        words +=
            (words.empty() ? "" : ", ") + graph_[tensor.dims[d]].name + ":" + mesh_.to_string(layout.dims[d]);
    return words;
  }

  std::string names_of(const Tensor& tensor) const {
    std::string names;
    for (DimId d : tensor.dims) names += (names.empty() ? "" : ", ") + graph_[d].name;
    return names.empty() ? "none: it is a scalar" : names;
  }

  AxisId find_axis(const ShardRule& rule, const std::string& name) const {
    const AxisId a = mesh_.find(name);
    if (a >= 0) return a;
    std::string names;
    for (const MeshAxis& axis : mesh_.axes) names += (names.empty() ? "" : ", ") + axis.name;
    throw Error(Code::kBadLayout, "the mesh has no axis \"" + name + "\"")
        .at(rule.origin)
        .legal(names)
        .fix("add the axis to parallel.mesh, or drop the rule");
  }

  // Of a rule for many tensors, some may not have the dimension.
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

  void check(const ShardRule& rule, const Tensor& tensor, const Layout& layout, std::size_t d) const {
    AxisSet seen;
    for (const AxisList& list : layout.dims)
      for (AxisId a : list) {
        if (seen.has(a))
          throw Error(Code::kBadLayout, "axis \"" + mesh_.axes[static_cast<std::size_t>(a)].name +
                                            "\" splits " + tensor.name + " twice")
              .at(rule.origin)
              .legal("each axis in one dimension of a tensor; so far " + words_of(tensor, layout))
              .fix(
                  "declare the other dimension whole in the same rule (its dim without axes), or take "
                  "another axis");
        seen.add(a);
      }
    const Dim& dim = graph_[tensor.dims[d]];
    const std::int64_t parts = mesh_.size(layout.dims[d]), pieces = pieces_for(parts, tensor, d);
    if (dim.size % pieces == 0) return;
    const AxisId axis = layout.dims[d].back();
    const std::int64_t others = parts / mesh_.size(axis);
    Misfit misfit{axis, {}, Error(Code::kBadLayout, "")};
    for (std::int64_t n = 1; n * others <= dim.size && n <= 4096; ++n)
      if (dim.size % pieces_for(n * others, tensor, d) == 0) misfit.sizes.push_back(n);
    const std::string fault = pieces == parts
                                  ? " does not divide " + dim.name + " = " + std::to_string(dim.size)
                                  : " cuts " + dim.name + " = " + std::to_string(dim.size) + " into " +
                                        std::to_string(pieces) + " chunks, two each, which do not divide it,";
    misfit.error = Error(Code::kBadLayout, mesh_.to_string(layout.dims[d]) + " of size " +
                                               std::to_string(parts) + fault + " of " + tensor.name)
                       .at(rule.origin)
                       .fix("give the mesh axis \"" + mesh_.axes[static_cast<std::size_t>(axis)].name +
                            "\" one of these sizes, or take a model whose " + dim.name +
                            " is a multiple of " + std::to_string(pieces));
    throw misfit;
  }

  bool divides(const Tensor& tensor, const Layout& layout) const {
    for (std::size_t d = 0; d < layout.dims.size(); ++d)
      if (graph_[tensor.dims[d]].size % mesh_.size(layout.dims[d]) != 0) return false;
    return true;
  }

  // Causal attention whose result keeps the sequence split goes round a ring (runtime/ir/zigzag.h).
  std::int64_t pieces_for(std::int64_t parts, const Tensor& tensor, std::size_t d) const {
    return d == 1 && parts > 1 && rings_.contains(&tensor) ? 2 * parts : parts;
  }

  const Graph& graph_;
  const Mesh& mesh_;
  Rules strictness_;
  std::vector<std::optional<Layout>> layouts_, used_;
  std::vector<Declaration> said_;  // the origins of each
  std::set<const Tensor*> rings_;  // results of causal attention
};

// Where a step computes with copies of the weights, rules about weights are about these. The weights
// themselves are the optimizer's, and lie as its moments do: their copies are what is gathered. Without
// nodes.
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

bool is_stored_only(const Tensor& t) { return t.cls == TensorClass::kOptimizer; }
bool is_kept(const Tensor& t) {
  return t.cls == TensorClass::kWeight || t.cls == TensorClass::kGradient || t.cls == TensorClass::kOptimizer;
}

}  // namespace

std::vector<ShardRule> expand_preset(std::string_view name, const Mesh& mesh) {
  std::string names;
  for (const Preset& preset : kPresets) {
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
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
  throw Error(Code::kBadLayout, "there is no preset \"" + std::string(name) + "\"")
      .at("parallel.presets")
      .legal(names);
}

bool matches(std::string_view pattern, std::string_view name) {
  // Most names end otherwise.
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

// A dimension that none of the tensors has which the rule is for.
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
    std::string legal;
    for (const std::string& name : names) legal += (legal.empty() ? "" : ", ") + name;
    throw Error(Code::kBadLayout, rule.tensor + " has no dimension \"" + dim.dim + "\"")
        .at(rule.origin)
        .legal(legal.empty() ? "none: these are scalars" : legal);
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
      named[i] += declared.apply(rules[i], i < own, [](const Tensor& t) { return !is_stored_only(t); });
  declared.follow_weights();
  for (std::size_t i = 0; i < rules.size(); ++i)
    named[i] += declared.apply(rules[i], i < own, rules[i].stored ? is_kept : is_stored_only);
  for (std::size_t i = own; i < rules.size() && strictness == Rules::kAllMustApply; ++i)
    if (named[i] == 0)
      throw Error(Code::kBadLayout, "the rule for \"" + rules[i].tensor + "\" names no tensor")
          .at(rules[i].origin)
          .fix("the names are listed by: hyperrun check JOB");
  for (std::size_t i = own; i < rules.size() && strictness == Rules::kAllMustApply; ++i)
    require_dims(seen, rules[i]);
  return declared.take();
}

// With the axis of another size all rules must hold, not this one alone.
std::string legal_sizes(const Misfit& misfit, const Graph& graph, const Mesh& mesh,
                        const ParallelSpec& parallel, Rules strictness) {
  std::string legal, of_this_alone;
  for (const std::int64_t size : misfit.sizes) {
    Mesh other = mesh;
    other.axes[static_cast<std::size_t>(misfit.axis)].size = static_cast<std::int32_t>(size);
    of_this_alone += (of_this_alone.empty() ? "" : ", ") + std::to_string(size);
    try {
      declare(graph, other, parallel, strictness);
      legal += (legal.empty() ? "" : ", ") + std::to_string(size);
    } catch (const Misfit&) {
    } catch (const Error&) {
    }
  }
  return legal.empty() ? of_this_alone : legal;
}

}  // namespace

std::vector<Declaration> declare_layouts(const Graph& graph, const Mesh& mesh, const ParallelSpec& parallel,
                                         Rules strictness) {
  try {
    return declare(graph, mesh, parallel, strictness);
  } catch (Misfit& misfit) {
    throw misfit.error.legal(legal_sizes(misfit, graph, mesh, parallel, strictness));
  }
}

}  // namespace hyperrun

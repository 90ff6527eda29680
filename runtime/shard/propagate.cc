#include "runtime/shard/propagate.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/shard/cache_axes.h"
#include "runtime/shard/emitter.h"
#include "runtime/shard/operand_layouts.h"
#include "runtime/shard/operator_rules.h"
#include "runtime/shard/reasons.h"
#include "runtime/shard/redistribute.h"
#include "runtime/shard/redistribute_memo.h"
#include "runtime/shard/ring.h"
#include "runtime/shard/rows.h"
#include "runtime/shard/rules.h"
#include "runtime/shard/token_axes.h"

namespace hyperrun {
namespace {

// What an assignment costs apart from bytes; smaller is better, compared from the top.
using Rank = std::pair<int, int>;  // moved declarations, unused axes

// Gradients of this weight cannot be added, as they are partial over different axes.
struct LieApart {
  std::string weight;
};

AxisSet axis_of_stages(const Mesh& mesh, const ParallelSpec& parallel) {
  AxisSet axes;
  if (const AxisId axis = mesh.find(parallel.pipeline.axis); axis >= 0) axes.add(axis);
  return axes;
}

class Propagation {
 public:
  // `completed`: weights whose gradients are completed in each micro-batch.
  Propagation(const Graph& graph, const Mesh& mesh, const ParallelSpec& parallel, Rules strictness,
              const std::set<std::string>& completed)
      : source_(graph),
        mesh_(mesh),
        declared_(declare_layouts(graph, mesh, parallel, strictness)),
        tokens_(graph, declared_),
        stages_(axis_of_stages(mesh, parallel)),
        out_{graph.dims, graph.tensors, {}, graph.outputs, {}},
        layouts_(out_, mesh, tokens_, completed) {
    order_sequence(out_, graph.nodes, mesh_, declared_);
    out_.nodes.reserve(2 * graph.nodes.size());
    rounds_gradients_ = parallel.gradients == kBfloat16;
    for (const Node& node : graph.nodes)
      if (std::holds_alternative<op::AdamW>(node.op)) moment_of_[node.inputs[1].value] = node.inputs[2];
    for (const Node& node : graph.nodes)
      for (TensorId rows : node.inputs)
        for (TensorId w : node.inputs)
          if (graph[rows].counts.valid() && !graph[w].counts.valid() && graph[w].vectors == 0 &&
              !graph[w].dims.empty() && graph[w].dims[0] == graph[rows].dims[0])
            weights_of_rows_[graph[rows].counts.value].push_back(w);
    out_.layouts.assign(graph.tensors.size(), Layout{});
    for (std::size_t t = 0; t < graph.tensors.size(); ++t)
      out_.layouts[t] = declared_[t].layout.value_or(Layout::replicated(graph.tensors[t].dims.size()));
  }

  Graph run() {
    for (const Node& node : source_.nodes) {
      emit_.phase = node.phase;
      emit_.layer = node.layer;
      if (std::holds_alternative<op::SumSquares>(node.op))
        sum_squares(node);
      else
        place(node);
    }
    for (auto& [label, t] : out_.outputs) {
      emit_.phase = Phase::kUpdate;
      t = in_layout(t, complete(out_.layouts[t.index()]), {Cause::kReport, "output"});
    }
    return std::move(out_);
  }

 private:
  // --- choice of an assignment ------------------------------------------------------------------

  std::vector<TensorOperand> operands_of(const Node& node, const OperatorRule& rule) const {
    std::vector<TensorOperand> list;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool as_it_lies =
          std::find(rule.as_it_lies.begin(), rule.as_it_lies.end(), i) != rule.as_it_lies.end();
      list.push_back({node.inputs[i], taken(node.inputs[i]), false, as_it_lies, i});
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      list.push_back({node.outputs[i], made(node.outputs[i]), true, false, i});
    return list;
  }

  // In which layout an operator would best leave its output, if that is declared: a gradient as its weight is
  // used, whatever it is kept in.
  std::optional<Layout> made(TensorId t) const {
    const Declaration& declared = declared_[t.index()];
    return emit_.phase == Phase::kBackward ? declared.used : declared.layout;
  }

  // In which layout an operator finds its input: where weights are kept in more parts than they are used in,
  // that is not how they lie.
  Layout taken(TensorId t) const {
    const bool used = emit_.phase == Phase::kForward || emit_.phase == Phase::kBackward;
    const bool weight = out_[t].cls == TensorClass::kWeight || out_[t].cls == TensorClass::kCopy;
    if (used && weight && t.index() < declared_.size()) return *declared_[t.index()].used;
    return out_.layouts[t.index()];
  }

  // The dimensions that axis `a` may go to: where an operand has it now or must have it, and, once it is
  // there, where the tokens have it. (What attention has moved to the heads finds back to the sequence.)
  std::vector<DimId> candidates(AxisId a, const std::vector<TensorOperand>& operands,
                                const OperatorRule& rule, AxisSet ring) const {
    if (ring.has(a)) return {rule.ring};
    std::set<DimId> found;
    for (const TensorOperand& o : operands) {
      if (!o.layout) continue;
      const int d = o.layout->dim_of(a);
      if (d < 0) continue;
      const DimId dim = out_[o.tensor].dims[static_cast<std::size_t>(d)];
      if (std::find(rule.whole.begin(), rule.whole.end(), dim) == rule.whole.end()) {
        found.insert(dim);
        continue;
      }
      found.insert(rule.instead.begin(), rule.instead.end());
      const int back = rule.back_to.valid() ? out_.layouts[rule.back_to.index()].dim_of(a) : -1;
      if (back > 0) found.insert(out_[rule.back_to].dims[static_cast<std::size_t>(back)]);
    }
    if (const DimId home = tokens_.home(a); home.valid() && !found.empty()) {
      const bool here = std::any_of(operands.begin(), operands.end(),
                                    [&](const TensorOperand& o) { return out_.has_dim(o.tensor, home); });
      if (here && std::find(rule.whole.begin(), rule.whole.end(), home) == rule.whole.end())
        found.insert(home);
    }
    return {found.begin(), found.end()};
  }

  // And those that it stays on; an invalid DimId is "on none".
  std::vector<DimId> options_of(AxisId a, const std::vector<TensorOperand>& operands,
                                const OperatorRule& rule, AxisSet ring) const {
    if (mesh_.size(a) == 1) return {DimId{}};
    if (std::any_of(operands.begin(), operands.end(),
                    [&](const TensorOperand& o) { return o.as_it_lies && o.layout->partial.has(a); }))
      return {stays_on(a, operands)};
    if (rule.rows.valid() && width_axes(rule.rows).has(a)) return {DimId{}};
    std::vector<DimId> options = candidates(a, operands, rule, ring);
    options.push_back(DimId{});
    return options;
  }

  // That split the weights of the products of these rows, but not from expert to expert.
  AxisSet width_axes(TensorId counts) const {
    AxisSet axes;
    const auto weights = weights_of_rows_.find(counts.value);
    if (weights == weights_of_rows_.end()) return axes;
    for (TensorId w : weights->second) {
      const Layout layout = taken(w);
      for (std::size_t d = 1; d < layout.dims.size(); ++d) axes = axes | set_of(layout.dims[d]);
    }
    return axes;
  }

  // That named the counts or their rows, else the weights of their products.
  std::string rule_about_rows(TensorId t) const {
    const TensorId counts = out_[t].counts.valid() ? out_[t].counts : t;
    std::vector<TensorId> named{t, counts};
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(declared_.size()); ++r)
      if (source_[TensorId(r)].counts == counts) named.push_back(TensorId(r));
    if (const auto weights = weights_of_rows_.find(counts.value); weights != weights_of_rows_.end())
      named.insert(named.end(), weights->second.begin(), weights->second.end());
    for (const TensorId n : named)
      if (n.index() < declared_.size() && !declared_[n.index()].origin.empty())
        return declared_[n.index()].origin;
    return "parallel";
  }

  // The dimension that `a` splits in operands that are taken as they lie.
  DimId stays_on(AxisId a, const std::vector<TensorOperand>& operands) const {
    for (const TensorOperand& o : operands)
      if (o.as_it_lies && o.layout->dim_of(a) >= 0)
        return out_[o.tensor].dims[static_cast<std::size_t>(o.layout->dim_of(a))];
    return {};
  }

  // The order of several axes on one dimension is the data's, the ring's, or that of the first operand that
  // has just these. What comes to a dimension `instead` of another comes behind what is there, and parts
  // what a device has of it.
  AxisList ordered(DimId dim, AxisList axes, const AxisList& ring, const std::vector<DimId>& instead,
                   const std::vector<TensorOperand>& operands) const {
    if (set_of(axes) == set_of(ring)) return ring;
    if (tokens_.order(dim, axes)) return axes;
    for (const TensorOperand& o : operands) {
      if (!o.layout) continue;
      for (std::size_t d = 0; d < o.layout->dims.size(); ++d)
        if (out_[o.tensor].dims[d] == dim && set_of(o.layout->dims[d]) == set_of(axes))
          return o.layout->dims[d];
    }
    if (std::ranges::find(instead, dim) != instead.end())
      std::ranges::stable_sort(axes, {}, [&](AxisId a) { return !is_there(a, dim, operands); });
    return axes;
  }

  bool is_there(AxisId a, DimId dim, const std::vector<TensorOperand>& operands) const {
    return std::ranges::any_of(operands, [&](const TensorOperand& o) {
      const int d = o.layout ? o.layout->dim_of(a) : -1;
      return d >= 0 && out_[o.tensor].dims[static_cast<std::size_t>(d)] == dim;
    });
  }

  bool divides(const Assignment& assignment) const {
    return std::all_of(assignment.begin(), assignment.end(), [&](const auto& entry) {
      return out_[entry.first].size % mesh_.size(entry.second) == 0;
    });
  }

  // Of those that rank best the first that moves the fewest bytes. They are few, and only of them the bytes
  // are asked for, which takes the most time.
  Assignment choose(const Node& node, const OperatorRule& rule, const std::vector<TensorOperand>& operands) {
    std::vector<Assignment> candidates = best_ranked(node, rule, operands);
    HR_CHECK(!candidates.empty(), node.name);
    if (candidates.size() == 1) return std::move(candidates[0]);
    std::size_t best = 0;
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::int64_t bytes = bytes_below(fewest, node, rule, operands, candidates[i]);
      if (bytes < fewest) fewest = bytes, best = i;
    }
    return std::move(candidates[best]);
  }

  // Of all that divide.
  std::vector<Assignment> best_ranked(const Node& node, const OperatorRule& rule,
                                      const std::vector<TensorOperand>& operands) const {
    const AxisList ring = ring_of(node, declared_);
    std::vector<std::vector<DimId>> options;  // per axis; an invalid DimId is "on none"
    for (AxisId a = 0; a < mesh_.rank(); ++a) {
      options.push_back(options_of(a, operands, rule, set_of(ring)));
      keep_cache(out_, node, a, options.back());
    }
    std::vector<std::size_t> pick(options.size(), 0);
    std::vector<Assignment> best;
    Rank best_rank;
    for (bool more = true; more;) {
      Assignment assignment;
      int unused = 0;
      for (std::size_t a = 0; a < options.size(); ++a) {
        const DimId dim = options[a][pick[a]];
        if (dim.valid())
          assignment[dim].push_back(static_cast<AxisId>(a));
        else if (options[a].size() > 1)
          ++unused;
      }
      for (auto& [dim, axes] : assignment) axes = ordered(dim, axes, ring, rule.instead, operands);
      if (divides(assignment)) {
        const Rank rank{moved(node, rule, operands, assignment), unused};
        if (best.empty() || rank < best_rank) best.clear(), best_rank = rank;
        if (rank == best_rank) best.push_back(std::move(assignment));
      }
      more = false;
      for (std::size_t a = 0; a < options.size() && !more; ++a) {
        more = ++pick[a] < options[a].size();
        if (!more) pick[a] = 0;
      }
    }
    return best;
  }

  static int weight_of_move(TensorClass cls) {
    switch (cls) {
      case TensorClass::kOptimizer: return 100;
      case TensorClass::kWeight:
      case TensorClass::kCopy:
      case TensorClass::kGradient: return 10;
      case TensorClass::kData: return 1;
      default: return 0;
    }
  }

  int moved(const Node& node, const OperatorRule& rule, const std::vector<TensorOperand>& operands,
            const Assignment& assignment) const {
    int total = 0;
    for (const TensorOperand& o : operands) {
      const int weight = weight_of_move(out_[o.tensor].cls);
      if (weight == 0 || !o.layout) continue;
      if (o.output ? !lies_as_made(node, rule, o, assignment) : !layouts_.is_split_as_taken(o, assignment))
        total += weight;
    }
    return total;
  }

  bool lies_as_made(const Node& node, const OperatorRule& rule, const TensorOperand& o,
                    const Assignment& assignment) const {
    const Layout natural = layouts_.output(node, rule, o, assignment);
    return natural == layouts_.wanted(o.tensor, *o.layout, natural);
  }

  // That the assignment moves; not counted further than to `limit`.
  std::int64_t bytes_below(std::int64_t limit, const Node& node, const OperatorRule& rule,
                           const std::vector<TensorOperand>& operands, const Assignment& assignment) {
    std::int64_t bytes = 0;
    for (const TensorOperand& o : operands) {
      if (!o.layout) continue;
      const Layout from = o.output ? layouts_.output(node, rule, o, assignment) : *o.layout;
      const Layout to = o.output ? layouts_.wanted(o.tensor, *o.layout, from) : layouts_.taken(o, assignment);
      if (from != to) bytes += wire_bytes(steps_.between(o.tensor, from, to)).value;
      if (bytes >= limit) break;
    }
    return bytes;
  }

  // --- emission -----------------------------------------------------------------------------------

  void place(const Node& node) {
    const OperatorRule rule = operator_rule(out_, node);
    const std::vector<TensorOperand> operands = operands_of(node, rule);
    const Assignment assignment = choose(node, rule, operands);
    Node placed = node;
    for (const TensorOperand& o : operands)
      if (!o.output)
        placed.inputs[o.index] =
            in_layout(o.tensor, layouts_.taken(o, assignment), why_taken(node, o.tensor));

    std::vector<std::pair<TensorOperand, Layout>>
        to_move;  // outputs that are declared otherwise than they come
    const bool fixed = !rule.own.empty() && leaves_parts(node, rule, operands, assignment);
    for (const TensorOperand& o : operands) {
      if (!o.output) continue;
      const Layout natural = layouts_.output(node, rule, o, assignment);
      const bool apart = adds_apart(node, o, natural);
      const Layout result = apart ? complete(natural) : natural;
      const std::optional<Layout>& declared = declared_[o.tensor.index()].layout;
      const Layout want = declared && !fixed ? layouts_.wanted(o.tensor, *declared, result) : result;
      out_.layouts[o.tensor.index()] = want;
      if (o.index == 0) require_one_layout(node, want);
      if (result != want) {
        placed.outputs[o.index] = exchanged(o.tensor, result, ".local");
        to_move.emplace_back(o, result);
      }
      if (apart) add_apart(placed, natural);
    }
    if (placed.outputs[0] != node.outputs[0] && is_accumulated(out_[node.outputs[0]].cls)) placed.addend = {};
    if (const AxisList ring = ring_of(node, declared_); mesh_.size(ring) > 1) {
      HR_CHECK(assignment.at(rule.ring) == ring, node.name);
      append_ring(out_, placed, ring, mesh_.size(ring));
    } else {
      out_.nodes.push_back(std::move(placed));
    }
    for (const auto& [o, result] : to_move) {
      if (is_accumulated(out_[o.tensor].cls))
        accumulate(node, o);
      else
        finish(node, o, result);
    }
  }

  // Whether some output is partial. What is relative to a device's own part, and what it is relative to, then
  // stay as they are made, whatever is declared.
  bool leaves_parts(const Node& node, const OperatorRule& rule, const std::vector<TensorOperand>& operands,
                    const Assignment& assignment) const {
    return std::any_of(operands.begin(), operands.end(), [&](const TensorOperand& o) {
      return o.output && !layouts_.output(node, rule, o, assignment).partial.empty();
    });
  }

  // A part of a sum over micro-batches is brought to where the sum lies, and added to it.
  void accumulate(const Node& node, const TensorOperand& o) {
    const TensorId part = in_layout(last_exchanged_.at(o.tensor.value), out_.layouts[o.tensor.index()],
                                    {Cause::kScattered, node.name, &declared_[o.tensor.index()], o.tensor});
    const TensorId addend = o.index == 0 ? node.addend : TensorId{};
    emit_.append(node.name + ".sum", op::Accumulate{}, {part}, {o.tensor}, addend);
  }

  // The addend of a product must lie as the product's own result; where it does not, it is added in a
  // node of its own, and both are completed for it.
  bool adds_apart(const Node& node, const TensorOperand& o, const Layout& natural) const {
    return o.index == 0 && node.addend.valid() && !is_accumulated(out_[o.tensor].cls) &&
           out_.layouts[node.addend.index()] != natural;
  }

  static Layout complete(const Layout& layout) { return {layout.dims, {}, Reduction::kSum}; }

  // Emits the operator; what is left to place is the sum.
  void add_apart(Node& placed, const Layout& natural) {
    const TensorId result = placed.outputs[0];
    const Layout complete = out_.layouts[result.index()];
    const TensorId addend = in_layout(placed.addend, complete, {Cause::kTaken, placed.name});
    const TensorId part = exchanged(result, natural, ".part");
    Node sum{placed.name + ".add", op::Add{}, {}, {result}, {}, placed.phase, placed.layer};
    placed.outputs[0] = part;
    placed.addend = {};
    out_.nodes.push_back(std::move(placed));
    sum.inputs = {addend,
                  in_layout(part, complete, {Cause::kTaken, out_.nodes.back().name, nullptr, result})};
    placed = std::move(sum);
  }

  // What is added to one sum over micro-batches lies alike. Where not all of a weight's gradients can stay
  // partial over the same axes, none does.
  void require_one_layout(const Node& node, const Layout& want) const {
    const TensorId sum = node.outputs[0];
    if (!node.addend.valid() || !is_accumulated(out_[sum].cls)) return;
    if (out_.layouts[node.addend.index()] != want) throw LieApart{weight_of(out_, sum)};
  }

  Why why_taken(const Node& node, TensorId t) const {
    if (std::holds_alternative<op::AdamW>(node.op))
      return {Cause::kUpdate, node.name, &declared_[node.inputs[2].index()]};
    if (out_[t].cls == TensorClass::kWeight && t.index() < declared_.size())
      return {Cause::kWeight, node.name, &declared_[t.index()]};
    return {Cause::kTaken, node.name, &declared_[node.outputs[0].index()]};
  }

  Why why_finished(const Node& node, TensorId t) const {
    if (std::holds_alternative<op::AdamW>(node.op))
      return {Cause::kUpdate, node.name, &declared_[node.inputs[2].index()], storage_of(out_, t)};
    return {Cause::kDeclared, node.name, &declared_[t.index()]};
  }

  // Brings the output as it was made to the declared layout; the last step writes the declared tensor itself.
  void finish(const Node& node, const TensorOperand& o, const Layout& result) {
    const Layout want = out_.layouts[o.tensor.index()];
    TensorId at = last_exchanged_.at(o.tensor.value);
    const Because because(emit_, reason(out_, mesh_, o.tensor, result, want, why_finished(node, o.tensor)));
    if (out_[o.tensor].counts.valid()) {
      emit_.write_instead(rows_.rows_in(at, want, node.name, counts_for(node.name)), o.tensor);
      return;
    }
    const auto steps = steps_.between(o.tensor, result, want);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const TensorId next = i + 1 == steps.size() ? o.tensor : exchanged(o.tensor, steps[i].after, ".step");
      emit_.append(node.name + "." + std::string(name(steps[i].op)), steps[i].op, {at}, {next});
      at = next;
    }
  }

  TensorId exchanged(TensorId of, const Layout& layout, const std::string& suffix) {
    return last_exchanged_[of.value] = emit_.moved(of, layout, suffix);
  }

  // `t` in `layout`. A redistribution serves all its users, but what was gathered for the forward pass
  // is not kept for the backward pass: it is larger than what it was made of, and made again.
  TensorId in_layout(TensorId t, const Layout& layout, const Why& why) {
    if (out_.layouts[t.index()] == layout) return t;
    auto& known = redistributed_[t.value];
    for (const Redistributed& r : known)
      if (r.layout == layout &&
          (r.phase == emit_.phase || out_[t].counts.valid() ||  // rows are as many on average
           elements(layout, t) <= elements(out_.layouts[t.index()], t)))
        return r.tensor;
    const std::string user(why.user);
    const Because because(emit_, reason(out_, mesh_, t, out_.layouts[t.index()], layout, why));
    const TensorId moved = out_[t].vectors > 0      ? rows_.counts_in(t, layout)
                           : out_[t].counts.valid() ? rows_.rows_in(t, layout, user, counts_for(user))
                                                    : dense_in(t, layout, user);
    redistributed_[t.value].push_back({layout, emit_.phase, moved});
    return moved;
  }

  TensorId dense_in(TensorId t, const Layout& layout, const std::string& user) {
    const auto steps = steps_.between(t, out_.layouts[t.index()], layout);
    const bool rounds = rounds_gradients_ && out_[t].cls == TensorClass::kGradient &&
                        mesh_.size(mesh_.list(out_.layouts[t.index()].partial)) > 1;
    TensorId at = rounds ? emit_.cast(t, t, DType::kBF16, "@rounded") : t;
    for (const RedistributionStep& step : steps) {
      const TensorId next = emit_.moved(t, step.after, "@" + user);
      out_[next].dtype = out_[at].dtype;
      emit_.append(out_[next].name + "." + std::string(name(step.op)), step.op, {at}, {next});
      at = next;
    }
    return rounds ? emit_.cast(at, t, out_[t].dtype, "@" + user + ".widened") : at;
  }

  std::function<TensorId(TensorId, const Layout&)> counts_for(const std::string& user) {
    return [this, user](TensorId counts, const Layout& layout) {
      return in_layout(counts, layout, {Cause::kTaken, user});
    };
  }

  std::int64_t elements(const Layout& layout, TensorId t) const {
    return local_elements(out_, t, layout, mesh_);
  }

  // The squares are summed where the parts lie, each stage of a pipeline its own: one node for each set of
  // splitting axes, then one reduction each.
  void sum_squares(const Node& node) {
    std::map<std::uint32_t, std::vector<TensorId>> groups;
    for (TensorId t : node.inputs) {
      const Layout layout = complete_layout(t);
      const auto moment = moment_of_.find(t.value);
      const Declaration* state = moment == moment_of_.end() ? nullptr : &declared_[moment->second.index()];
      groups[layout.split_axes().bits].push_back(in_layout(t, layout, {Cause::kGradient, node.name, state}));
    }
    std::vector<TensorId> totals;
    for (const auto& [bits, members] : groups) {
      const TensorId part = out_.add_tensor(Tensor{node.name + ".of_" + mesh_.to_string(mesh_.list({bits}))});
      out_.layouts.push_back(Layout{{}, AxisSet{bits} | stages_, Reduction::kSum});
      out_.nodes.push_back({out_[part].name, op::SumSquares{}, members, {part}, {}, node.phase});
      totals.push_back(in_layout(part, Layout{}, {Cause::kTaken, node.name}));
    }
    out_.layouts[node.outputs[0].index()] = Layout{};
    out_.nodes.push_back({node.name + ".sum", op::AddScalars{}, totals, node.outputs, {}, node.phase});
  }

  // Without partial results: as the optimizer will take it, so that it is exchanged once.
  Layout complete_layout(TensorId t) const {
    const auto moment = moment_of_.find(t.value);
    if (moment != moment_of_.end()) return *declared_[moment->second.index()].layout;
    return Layout{out_.layouts[t.index()].dims, {}, Reduction::kSum};
  }

  const Graph& source_;
  const Mesh& mesh_;
  std::vector<Declaration> declared_;
  const TokenAxes tokens_;
  bool rounds_gradients_ = false;  // where devices add them up
  const AxisSet stages_;           // the axis of a pipeline's stages, which splits no tensor
  Graph out_;
  const OperandLayouts layouts_;
  Emitter emit_{out_};
  RowExchange rows_{out_, mesh_, emit_, [this](TensorId t) { return rule_about_rows(t); }};
  struct Redistributed {
    Layout layout;
    Phase phase;
    TensorId tensor;
  };
  std::map<std::int32_t, std::vector<Redistributed>> redistributed_;  // of a tensor
  std::map<std::int32_t, TensorId> last_exchanged_;
  std::map<std::int32_t, std::vector<TensorId>> weights_of_rows_;  // by the rows' counts
  std::map<std::int32_t, TensorId> moment_of_;                     // of a gradient that the optimizer takes
  RedistributeMemo steps_{out_, mesh_, stages_};
};

}  // namespace

Graph shard(const Graph& graph, const Mesh& mesh, const ParallelSpec& parallel, Rules strictness) {
  std::set<std::string> completed;
  for (;;) {
    try {
      Graph sharded = Propagation(graph, mesh, parallel, strictness, completed).run();
      verify(sharded);
      return sharded;
    } catch (const LieApart& e) {
      HR_CHECK(completed.insert(e.weight).second, e.weight);
    }
  }
}

}  // namespace hyperrun

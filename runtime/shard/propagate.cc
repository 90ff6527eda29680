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

// The cost of an assignment apart from bytes; smaller is better, compared lexicographically.
using Rank = std::pair<int, int>;  // moved declarations, unused axes

// Thrown if gradients of a weight cannot be added because they are partial over different axes.
struct IncompatibleGradients {
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
    pad_dims(out_, mesh_, declared_);
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
      const bool keep_partial =
          std::find(rule.keep_partial.begin(), rule.keep_partial.end(), i) != rule.keep_partial.end();
      list.push_back({node.inputs[i], input_layout(node.inputs[i]), false, keep_partial, i});
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      list.push_back({node.outputs[i], output_layout(node.outputs[i]), true, false, i});
    return list;
  }

  // The declared layout that an operator should give its output. A gradient gets the layout in which its
  // weight is used, even if it is stored in more parts.
  std::optional<Layout> output_layout(TensorId t) const {
    const Declaration& declared = declared_[t.index()];
    return emit_.phase == Phase::kBackward ? declared.used : declared.layout;
  }

  // The layout in which an operator finds its input. Weights count as gathered to the layout in which they
  // are used.
  Layout input_layout(TensorId t) const {
    const bool used = emit_.phase == Phase::kForward || emit_.phase == Phase::kBackward;
    const bool weight = out_[t].cls == TensorClass::kWeight || out_[t].cls == TensorClass::kCopy;
    if (used && weight && t.index() < declared_.size()) return *declared_[t.index()].used;
    return out_.layouts[t.index()];
  }

  // The dimensions that axis `a` may split: those that it splits in an operand now or by declaration. If
  // there are any, also the dimension that it splits in the tokens; so an axis returns from attention's heads
  // to the sequence.
  std::vector<DimId> candidates(AxisId a, const std::vector<TensorOperand>& operands,
                                const OperatorRule& rule, AxisSet ring) const {
    if (ring.has(a)) return {rule.ring_dim};
    std::set<DimId> found;
    for (const TensorOperand& o : operands) {
      if (!o.layout) continue;
      const int d = o.layout->dim_of(a);
      if (d < 0) continue;
      const DimId dim = out_[o.tensor].dims[static_cast<std::size_t>(d)];
      if (std::find(rule.must_replicate.begin(), rule.must_replicate.end(), dim) ==
          rule.must_replicate.end()) {
        found.insert(dim);
        continue;
      }
      found.insert(rule.redirect_to.begin(), rule.redirect_to.end());
      const int back = rule.redirect_like.valid() ? out_.layouts[rule.redirect_like.index()].dim_of(a) : -1;
      if (back > 0) found.insert(out_[rule.redirect_like].dims[static_cast<std::size_t>(back)]);
    }
    if (const DimId token_dim = tokens_.dim_of(a); token_dim.valid() && !found.empty()) {
      const bool here = std::any_of(operands.begin(), operands.end(), [&](const TensorOperand& o) {
        return out_.has_dim(o.tensor, token_dim);
      });
      if (here && std::find(rule.must_replicate.begin(), rule.must_replicate.end(), token_dim) ==
                      rule.must_replicate.end())
        found.insert(token_dim);
    }
    return {found.begin(), found.end()};
  }

  // All choices for axis `a`; an invalid DimId means none.
  std::vector<DimId> options_of(AxisId a, const std::vector<TensorOperand>& operands,
                                const OperatorRule& rule, AxisSet ring) const {
    if (mesh_.size(a) == 1) return {DimId{}};
    if (std::any_of(operands.begin(), operands.end(),
                    [&](const TensorOperand& o) { return o.keep_partial && o.layout->partial.has(a); }))
      return {kept_dim(a, operands)};
    if (rule.row_counts.valid() && width_axes(rule.row_counts).has(a)) return {DimId{}};
    std::vector<DimId> options = candidates(a, operands, rule, ring);
    options.push_back(DimId{});
    return options;
  }

  // The axes that split the weights of these rows' products within experts.
  AxisSet width_axes(TensorId counts) const {
    AxisSet axes;
    const auto weights = weights_of_rows_.find(counts.value);
    if (weights == weights_of_rows_.end()) return axes;
    for (TensorId w : weights->second) {
      const Layout layout = input_layout(w);
      for (std::size_t d = 1; d < layout.dims.size(); ++d) axes = axes | set_of(layout.dims[d]);
    }
    return axes;
  }

  // The rule that named the counts or their rows, or else the weights of their products.
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

  // The dimension that `a` splits in operands that stay partial.
  DimId kept_dim(AxisId a, const std::vector<TensorOperand>& operands) const {
    for (const TensorOperand& o : operands)
      if (o.keep_partial && o.layout->dim_of(a) >= 0)
        return out_[o.tensor].dims[static_cast<std::size_t>(o.layout->dim_of(a))];
    return {};
  }

  // Orders several axes of one dimension: like the ring, like the tokens, or like the first operand that is
  // split by exactly these. Redirected axes come last, so that they divide each device's present part.
  AxisList ordered(DimId dim, AxisList axes, const AxisList& ring, const std::vector<DimId>& redirect_to,
                   const std::vector<TensorOperand>& operands) const {
    if (set_of(axes) == set_of(ring)) return ring;
    if (tokens_.order(dim, axes)) return axes;
    for (const TensorOperand& o : operands) {
      if (!o.layout) continue;
      for (std::size_t d = 0; d < o.layout->dims.size(); ++d)
        if (out_[o.tensor].dims[d] == dim && set_of(o.layout->dims[d]) == set_of(axes))
          return o.layout->dims[d];
    }
    if (std::ranges::find(redirect_to, dim) != redirect_to.end())
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

  // The assignment with the best rank that moves the fewest bytes. Counting bytes takes the most time, so it
  // is done only for the few that rank best.
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

  // The best ranked of all assignments that divide their dimensions.
  std::vector<Assignment> best_ranked(const Node& node, const OperatorRule& rule,
                                      const std::vector<TensorOperand>& operands) const {
    const AxisList ring = ring_of(node, declared_);
    std::vector<std::vector<DimId>> options;  // by axis; an invalid DimId means none
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
      for (auto& [dim, axes] : assignment) axes = ordered(dim, axes, ring, rule.redirect_to, operands);
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
      if (o.output ? !is_made_as_declared(node, rule, o, assignment)
                   : !layouts_.is_split_like_input(o, assignment))
        total += weight;
    }
    return total;
  }

  bool is_made_as_declared(const Node& node, const OperatorRule& rule, const TensorOperand& o,
                           const Assignment& assignment) const {
    const Layout natural = layouts_.output(node, rule, o, assignment);
    return natural == layouts_.wanted(o.tensor, *o.layout, natural);
  }

  // The bytes that an assignment moves. Counting stops at `limit`.
  std::int64_t bytes_below(std::int64_t limit, const Node& node, const OperatorRule& rule,
                           const std::vector<TensorOperand>& operands, const Assignment& assignment) {
    std::int64_t bytes = 0;
    for (const TensorOperand& o : operands) {
      if (!o.layout) continue;
      const Layout from = o.output ? layouts_.output(node, rule, o, assignment) : *o.layout;
      const Layout to = o.output ? layouts_.wanted(o.tensor, *o.layout, from) : layouts_.input(o, assignment);
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
            in_layout(o.tensor, layouts_.input(o, assignment), why_taken(node, o.tensor));

    // Outputs whose declared layout is not the one in which the operator leaves them.
    std::vector<std::pair<TensorOperand, Layout>> redistributed_outputs;
    const bool fixed = !rule.local_outputs.empty() && leaves_partial(node, rule, operands, assignment);
    for (const TensorOperand& o : operands) {
      if (!o.output) continue;
      const Layout natural = layouts_.output(node, rule, o, assignment);
      const bool separate = needs_separate_add(node, o, natural);
      const Layout result = separate ? complete(natural) : natural;
      const std::optional<Layout>& declared = declared_[o.tensor.index()].layout;
      const Layout want = declared && !fixed ? layouts_.wanted(o.tensor, *declared, result) : result;
      out_.layouts[o.tensor.index()] = want;
      if (o.index == 0) require_equal_layouts(node, want);
      if (result != want) {
        placed.outputs[o.index] = exchanged(o.tensor, result, ".local");
        redistributed_outputs.emplace_back(o, result);
      }
      if (separate) add_separately(placed, natural);
    }
    if (placed.outputs[0] != node.outputs[0] && is_accumulated(out_[node.outputs[0]].cls)) placed.addend = {};
    if (const AxisList ring = ring_of(node, declared_); mesh_.size(ring) > 1) {
      HR_CHECK(assignment.at(rule.ring_dim) == ring, node.name);
      append_ring(out_, placed, ring, mesh_.size(ring));
    } else {
      out_.nodes.push_back(std::move(placed));
    }
    for (const auto& [o, result] : redistributed_outputs) {
      if (is_accumulated(out_[o.tensor].cls))
        accumulate(node, o);
      else
        redistribute_output(node, o, result);
    }
  }

  // Whether some output is partial. Then local outputs, and those that they are relative to, keep the layouts
  // in which they are computed, whatever is declared.
  bool leaves_partial(const Node& node, const OperatorRule& rule, const std::vector<TensorOperand>& operands,
                      const Assignment& assignment) const {
    return std::any_of(operands.begin(), operands.end(), [&](const TensorOperand& o) {
      return o.output && !layouts_.output(node, rule, o, assignment).partial.empty();
    });
  }

  // Redistributes one micro-batch's part to the layout of the sum, and adds it.
  void accumulate(const Node& node, const TensorOperand& o) {
    const TensorId part = in_layout(last_exchanged_.at(o.tensor.value), out_.layouts[o.tensor.index()],
                                    {Cause::kScattered, node.name, &declared_[o.tensor.index()], o.tensor});
    const TensorId addend = o.index == 0 ? node.addend : TensorId{};
    emit_.append(node.name + ".sum", op::Accumulate{}, {part}, {o.tensor}, addend);
  }

  // Whether a product and its addend have different layouts. Then both are completed and added by a separate
  // node.
  bool needs_separate_add(const Node& node, const TensorOperand& o, const Layout& natural) const {
    return o.index == 0 && node.addend.valid() && !is_accumulated(out_[o.tensor].cls) &&
           out_.layouts[node.addend.index()] != natural;
  }

  static Layout complete(const Layout& layout) { return {layout.dims, {}, Reduction::kSum}; }

  // Emits the operator without its addend. `placed` becomes the node that adds them.
  void add_separately(Node& placed, const Layout& natural) {
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

  // All gradients added to one sum over micro-batches must have one layout. If they cannot all stay partial
  // over the same axes, throws, and the weight's gradients are completed in each micro-batch.
  void require_equal_layouts(const Node& node, const Layout& want) const {
    const TensorId sum = node.outputs[0];
    if (!node.addend.valid() || !is_accumulated(out_[sum].cls)) return;
    if (out_.layouts[node.addend.index()] != want) throw IncompatibleGradients{weight_of(out_, sum)};
  }

  Why why_taken(const Node& node, TensorId t) const {
    if (std::holds_alternative<op::AdamW>(node.op))
      return {Cause::kUpdate, node.name, &declared_[node.inputs[2].index()]};
    if (out_[t].cls == TensorClass::kWeight && t.index() < declared_.size())
      return {Cause::kWeight, node.name, &declared_[t.index()]};
    return {Cause::kTaken, node.name, &declared_[node.outputs[0].index()]};
  }

  Why why_redistributed(const Node& node, TensorId t) const {
    if (std::holds_alternative<op::AdamW>(node.op))
      return {Cause::kUpdate, node.name, &declared_[node.inputs[2].index()], storage_of(out_, t)};
    return {Cause::kDeclared, node.name, &declared_[t.index()]};
  }

  // Redistributes an output to its declared layout. The last step writes the declared tensor itself.
  void redistribute_output(const Node& node, const TensorOperand& o, const Layout& result) {
    const Layout want = out_.layouts[o.tensor.index()];
    TensorId at = last_exchanged_.at(o.tensor.value);
    const ReasonScope reason_scope(
        emit_, reason(out_, mesh_, o.tensor, result, want, why_redistributed(node, o.tensor)));
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

  // Returns `t` in `layout`, redistributed if need be. All users share a redistribution, except that a tensor
  // gathered in the forward pass is gathered again in the backward pass, as keeping it would take more
  // memory.
  TensorId in_layout(TensorId t, const Layout& layout, const Why& why) {
    if (out_.layouts[t.index()] == layout) return t;
    auto& known = redistributed_[t.value];
    for (const Redistributed& r : known)
      if (r.layout == layout && (r.phase == emit_.phase ||
                                 out_[t].counts.valid() ||  // exchanges keep the number of rows on average
                                 elements(layout, t) <= elements(out_.layouts[t.index()], t)))
        return r.tensor;
    const std::string user(why.user);
    const ReasonScope reason_scope(emit_, reason(out_, mesh_, t, out_.layouts[t.index()], layout, why));
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

  // Sums squares without moving gradients, on each stage of a pipeline its own. Gradients that are split over
  // the same axes share one node and one reduction.
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

  // The layout without partial results in which the optimizer takes a gradient, so that it is exchanged once.
  Layout complete_layout(TensorId t) const {
    const auto moment = moment_of_.find(t.value);
    if (moment != moment_of_.end()) return *declared_[moment->second.index()].layout;
    return Layout{out_.layouts[t.index()].dims, {}, Reduction::kSum};
  }

  const Graph& source_;
  const Mesh& mesh_;
  std::vector<Declaration> declared_;
  const TokenAxes tokens_;
  bool rounds_gradients_ = false;  // to bfloat16 for reductions
  const AxisSet stages_;           // the axis of pipeline stages, which splits no tensor
  Graph out_;
  const OperandLayouts layouts_;
  Emitter emit_{out_};
  RowExchange rows_{out_, mesh_, emit_, [this](TensorId t) { return rule_about_rows(t); }};
  struct Redistributed {
    Layout layout;
    Phase phase;
    TensorId tensor;
  };
  std::map<std::int32_t, std::vector<Redistributed>> redistributed_;  // by tensor
  std::map<std::int32_t, TensorId> last_exchanged_;
  std::map<std::int32_t, std::vector<TensorId>> weights_of_rows_;  // by counts of rows
  std::map<std::int32_t, TensorId> moment_of_;                     // by gradient: a moment of the optimizer
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
    } catch (const IncompatibleGradients& e) {
      HR_CHECK(completed.insert(e.weight).second, e.weight);
    }
  }
}

}  // namespace hyperrun

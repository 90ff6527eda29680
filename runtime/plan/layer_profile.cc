#include "runtime/plan/layer_profile.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/early_updates.h"
#include "runtime/plan/gradient_scatter_bound.h"
#include "runtime/plan/instr_attribution.h"
#include "runtime/plan/instr_order.h"
#include "runtime/plan/layer_kinds.h"
#include "runtime/plan/layer_profile_memory.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Scatter time, as a share of the backward pass, at which the longest paths are taken.
constexpr std::array kScatterShares{1.0 / 6, 1.0 / 2};

// Activations that the second layer reads from the first, by their frozen ids.
std::vector<TensorId> handed_over(const ParametricStep& step) {
  const Graph& graph = step.graph();
  std::vector<bool> made(graph.tensors.size());
  std::vector<TensorId> list;
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::kForward) continue;
    for (const TensorId t : node.inputs)
      if (node.layer == 1 && made[t.index()]) made[t.index()] = false, list.push_back(step.frozen(t));
    for (const TensorId t : node.outputs) made[t.index()] = node.layer == 0;
  }
  return list;
}

}  // namespace

struct ProfileExtractor::Facts {
  Facts(const ParametricStep& of, LayerKinds of_layers)
      : step(of),
        kinds(std::move(of_layers)),
        layers(kinds.layers()),
        sites(attribute_instrs(of, layers)),
        order(of.program()),
        lifetimes(lifetimes_of(of.program(), sites, layers)),
        memory(of, kinds, sites, lifetimes),
        handed(handed_over(of)),
        update_last(!may_come_early(of.program())) {
    for (std::size_t i = 0; i < sites.size(); ++i) {
      streams.push_back(of.program().instrs[i].stream);
      updates.push_back(std::holds_alternative<instr::AdamW>(of.program().instrs[i].op));
      for_weights.push_back(sites[i].for_weights), for_others.push_back(!sites[i].for_weights);
      const std::vector<TensorId>& made = of.node(i).outputs;
      expert.push_back(!made.empty() && is_split_over_experts(step, made.front()));
    }
    for (std::size_t i = 0; i < sites.size(); ++i) {
      const InstrSite& h = sites[i];
      if (streams[i] == StreamKind::kCube) first_products.try_emplace({h.micro_batch, h.phase, h.layer}, i);
      if (h.micro_batch == kMiddleMicroBatch) middle[{h.phase, h.layer}].push_back(i);
      if (h.micro_batch == 0) first[{h.phase, h.layer}].push_back(i);
      if (h.phase == Phase::kUpdate || h.phase == Phase::kBegin) once.push_back(i);
    }
    find_gradients(of.program());
    for (int kind = 0; kind < kinds.count(); ++kind) {
      const int f = kinds.last_of(kind) - 1, b = kinds.second_of(kind);
      forward.push_back(span({Phase::kForward, f}, {Phase::kForward, f + 1}));
      backward.push_back(span({Phase::kBackward, b}, {Phase::kBackward, b - 1}));
      split.push_back(split_span({Phase::kBackward, b}, {Phase::kBackward, b - 1}));
      weights.push_back(weights_span(b));
      chains.push_back(chain_of(of.program(), kind));
    }
    head = span({Phase::kForward, layers}, {Phase::kBackward, layers - 1});
    split_head = split_span({Phase::kForward, layers}, {Phase::kBackward, layers - 1});
  }

  // The part of a backward pass that depends on the gradient of the next layer.
  struct Chain {
    std::size_t from = 0;
    std::vector<bool> behind;  // the dependent instructions, up to the first product of the next pass
    bool has_others = false;   // true if some instruction is independent
  };

  // The range from the first product of a pass to that of the next, in the middle micro-batch.
  struct Span {
    std::size_t from = 0, to = 0;
    std::vector<bool> behind;  // instructions that depend on the first product
  };

  Span span(const std::pair<Phase, int>& of, const std::pair<Phase, int>& next) const {
    Span s{first_products.at({kMiddleMicroBatch, of.first, of.second}),
           first_products.at({kMiddleMicroBatch, next.first, next.second}),
           {}};
    HR_CHECK(s.from <= s.to, "a layer's products come before those of the one before it");
    std::vector<bool> source(s.to + 1);
    source[s.from] = true;
    s.behind = order.behind(source, s.from, s.to);
    return s;
  }

  // The same range without weight gradients.
  Span split_span(const std::pair<Phase, int>& of, const std::pair<Phase, int>& next) const {
    const auto first = [&](const std::pair<Phase, int>& piece) {
      std::size_t i = first_products.at({kMiddleMicroBatch, piece.first, piece.second});
      while (for_weights[i] || streams[i] != StreamKind::kCube) ++i;
      return i;
    };
    Span s{first(of), first(next), {}};
    std::vector<bool> source(s.to + 1);
    source[s.from] = true;
    s.behind = order.behind(source, s.from, s.to, &for_weights);
    return s;
  }

  // The range from the first weight gradient of a layer to that of the next.
  Span weights_span(int layer) const {
    const auto first = [&](int of) {
      std::size_t i = first_products.at({kMiddleMicroBatch, Phase::kBackward, of});
      while (!for_weights[i] || streams[i] != StreamKind::kCube) ++i;
      return i;
    };
    Span s{first(layer), first(layer - 1), {}};
    s.behind.assign(s.to + 1 - s.from, true);
    return s;
  }

  Chain chain_of(const Program& program, int kind) const {
    const int layer = kinds.second_of(kind);
    const auto is_backward = [&](std::size_t i, int of) {
      return sites[i].micro_batch == kMiddleMicroBatch && sites[i].phase == Phase::kBackward &&
             sites[i].layer == of;
    };
    std::vector<bool> sources(sites.size()), handed_on(program.buffers.size());
    Chain chain;
    const std::size_t to = first_products.at({kMiddleMicroBatch, Phase::kBackward, layer - 1});
    chain.from = first_products.at({kMiddleMicroBatch, Phase::kBackward, layer});
    for (std::size_t i = 0; i <= to; ++i) {
      const bool is_own = is_backward(i, layer), is_of_next = is_backward(i, layer + 1);
      if (is_own || is_of_next)
        each_use(program.instrs[i], [&](const Operand& o, bool reads, bool writes) {
          if (is_own && reads && handed_on[o.buffer.index()]) sources[i] = true;
          if (writes) handed_on[o.buffer.index()] = is_of_next;
        });
      if (sources[i]) chain.from = std::min(chain.from, i);
    }
    chain.behind = order.behind(sources, chain.from, to);
    chain.has_others = std::ranges::find(chain.behind, false) != chain.behind.end();
    return chain;
  }

  struct Made {
    std::size_t instr = 0, buffer = 0;
    AxisList shared_tensor_axes;  // see instr_attribution.h
  };

  // Finds gradients that ZeRO may scatter in the backward pass: of weights that have the model's width and
  // are not split over experts. For an accumulated gradient, the instruction that made the addend counts.
  void find_gradients(const Program& program) {
    std::vector<std::size_t> writer(program.buffers.size(), sites.size());
    std::map<std::size_t, std::size_t> made;  // buffer to instruction
    for (std::size_t i = 0; i < sites.size(); ++i) {
      if (sites[i].micro_batch != kMiddleMicroBatch || sites[i].phase != Phase::kBackward) continue;
      const Instr& instr = program.instrs[i];
      const bool adds = std::holds_alternative<instr::Accumulate>(instr.op);
      for (const Operand& o : instr.out) {
        const std::size_t b = o.buffer.index();
        writer[b] = adds ? writer[instr.in[0].buffer.index()] : i;
        if (program.buffers[b].category == Category::kGradients && lifetimes[b].whole_step &&
            is_scattered(step.tensor_in(b)))
          made[b] = writer[b];
      }
    }
    for (const auto& [b, i] : made)
      if (i < sites.size()) gradients.push_back({i, b, shared_tensor_axes(step, step.tensor_in(b))});
  }

  bool is_scattered(TensorId t) const {
    return t.valid() && !is_split_over_experts(step, t) && has_model_width(step, t);
  }

  // Instructions of a pass of the middle micro-batch.
  const std::vector<std::size_t>& pass_instrs(Phase phase, int layer) const {
    static const std::vector<std::size_t> kNone;
    const auto found = middle.find({phase, layer});
    return found == middle.end() ? kNone : found->second;
  }

  const ParametricStep& step;
  LayerKinds kinds;
  int layers;
  std::vector<InstrSite> sites;
  InstrOrder order;
  std::vector<BufferLifetime> lifetimes;  // by buffer
  LayerProfileMemory memory;
  std::vector<TensorId> handed;
  bool update_last;  // see StepProfile
  // Facts by instruction: stream; is it an optimizer update; does no other stage wait for it; is its result
  // split over experts.
  std::vector<StreamKind> streams;
  std::vector<bool> updates, for_weights, for_others, expert;
  // First product by micro-batch, phase and layer. A pass without products is missing.
  std::map<std::tuple<int, Phase, int>, std::size_t> first_products;
  // Instructions of the first and the middle micro-batch by phase and layer, in program order.
  std::map<std::pair<Phase, int>, std::vector<std::size_t>> first, middle;
  std::vector<std::size_t> once;                        // instructions that run once a step, in program order
  std::vector<Made> gradients;                          // gradients that ZeRO may scatter
  std::vector<Span> forward, backward, split, weights;  // by kind
  Span head, split_head;                                // from the head to the first backward pass
  std::vector<Chain> chains;                            // by kind
};

class ProfileExtractor::Extraction {
 public:
  Extraction(const Facts& facts, const std::vector<double>& durations, const std::vector<double>& least)
      : facts_(facts),
        program_(facts.step.program()),
        durations_(durations),
        least_(least),
        layers_(facts.layers),
        sites_(facts.sites),
        order_(facts.order),
        begins_(order_.begins(durations, 0, first_product(kMiddleMicroBatch + 1, Phase::kForward, 0))) {}

  StepProfile run() {
    profile_.kinds.resize(at(facts_.kinds.count()));
    for (std::size_t k = 0; k < profile_.kinds.size(); ++k) extract_kind(static_cast<int>(k));
    extract_ends();
    add_once_a_step();
    facts_.memory.add_to(profile_);
    profile_.update_last = facts_.update_last;
    profile_.message = handed_over();
    return std::move(profile_);
  }

 private:
  std::size_t first_product(int micro_batch, Phase phase, int layer) const {
    return facts_.first_products.at({micro_batch, phase, layer});
  }

  // Profile of one pass. Work before the first product, such as rematerialisation on another stream, is not
  // counted in the bound.
  PassProfile pass_profile(const Facts::Span& span, Phase phase, int layer) const {
    PassProfile p;
    p.time = begins_[span.to] - begins_[span.from];
    const std::vector<double> alone = order_.begins_behind(least_, span.behind, span.from);
    p.bound = alone.back();
    for (const std::size_t i : facts_.pass_instrs(phase, layer)) {
      keep_busy(p, i);
      if (i < span.from || i > span.to || facts_.streams[i] != StreamKind::kCube) continue;
      const double end = alone[i - span.from] + least_[i];
      p.end_bound = std::max(p.end_bound, end);
      if (!facts_.for_weights[i]) p.handoff_bound = std::max(p.handoff_bound, end);
    }
    return p;
  }

  SplitPass split_pass(const Facts::Span& span, Phase phase, int layer) const {
    SplitPass p;
    const auto begins = [&](const std::vector<double>& d) {
      return order_.begins_behind(d, span.behind, span.from, &facts_.for_weights);
    };
    const std::vector<double> alone = begins(least_);
    p.time = begins(durations_).back(), p.bound = alone.back();
    for (const std::size_t i : facts_.pass_instrs(phase, layer)) {
      if (facts_.streams[i] != StreamKind::kCube) continue;
      if (facts_.for_weights[i])
        p.weights += least_[i];
      else if (span.from <= i && i <= span.to)
        p.end_bound = std::max(p.end_bound, alone[i - span.from] + least_[i]);
    }
    return p;
  }

  // Deferred weight gradients, one layer after another. Their reduce-scatter shares a stream with the gather
  // of activations for the next product.
  void extract_deferred(const Facts::Span& span, SplitPass& p) const {
    p.deferred = order_.begins_behind(durations_, span.behind, span.from, &facts_.for_others).back();
    double collectives = 0;
    for (std::size_t i = span.from; i < span.to; ++i)
      if (facts_.for_weights[i] && communicates(facts_.streams[i])) collectives += durations_[i];
    p.exchanged = std::max(p.deferred, collectives);
  }

  void extract_prologue(int kind, PassProfile& backward) const {
    const Facts::Chain& chain = facts_.chains[at(kind)];
    if (!chain.has_others) return;
    const auto behind = [&](const std::vector<double>& d) {
      return order_.begins_behind(d, chain.behind, chain.from).back();
    };
    backward.prologue = std::max(0.0, backward.time - behind(durations_));
    backward.prologue_bound = std::max(0.0, backward.bound - behind(least_));
  }

  void extract_scattered(const Facts::Span& span, int layer, LayerProfile& profile) const {
    std::vector<std::int64_t> bytes(sites_.size());
    std::int64_t all = 0;
    for (const auto& [i, b, cut] : facts_.gradients) {
      if (i < span.from || i >= span.to) continue;
      const std::int64_t own = program_.buffers[b].bytes.value / program_.mesh.size(cut);
      bytes[i] += own, all += own;
    }
    if (all == 0) return;
    const GradientScatterBound scattering(order_, facts_.streams, least_, bytes);
    for (std::size_t k = 0; k < kScatterShares.size(); ++k) {
      const double per_byte = kScatterShares[k] * profile.backward.bound / static_cast<double>(all);
      const std::vector<ScatterTime> begins = scattering.begins(span.from, span.to, per_byte);
      profile.scattered[k].bound = begins.back();
      ScatterTime& end_bound = profile.scattered[k].end_bound;
      for (const std::size_t i : facts_.pass_instrs(Phase::kBackward, layer)) {
        if (i < span.from || i > span.to || facts_.streams[i] != StreamKind::kCube) continue;
        const ScatterTime end{begins[i - span.from].time + least_[i], begins[i - span.from].bytes};
        if (end.at(per_byte) > end_bound.at(per_byte)) end_bound = end;
      }
    }
  }

  void keep_busy(PassProfile& p, std::size_t i) const {
    const auto stream = static_cast<std::size_t>(facts_.streams[i]);
    p.busy[stream] += durations_[i];
    p.busy_bound[stream] += least_[i];
  }

  // The savings of the first micro-batch's pass against the middle one.
  void extract_saved(LayerProfile& profile, Phase phase, int layer) const {
    const auto add = [&](const auto& list, double sign) {
      const auto found = list.find({phase, layer});
      if (found == list.end()) return;
      for (const std::size_t i : found->second)
        profile.saved[static_cast<std::size_t>(facts_.streams[i])] += sign * least_[i];
    };
    add(facts_.middle, 1), add(facts_.first, -1);
    for (double& s : profile.saved) s = std::max(0.0, s);
  }

  void extract_kind(int kind) {
    LayerProfile& profile = profile_.kinds[at(kind)];
    const int f = facts_.kinds.last_of(kind) - 1, b = facts_.kinds.second_of(kind);
    profile.forward = pass_profile(facts_.forward[at(kind)], Phase::kForward, f);
    const Facts::Span& back = facts_.backward[at(kind)];
    profile.backward = pass_profile(back, Phase::kBackward, b);
    // Work that streams have left when the pass begins, such as exchanging gradients of the head, delays a
    // micro-batch once, not in each layer.
    const double alone = order_.begins(durations_, back.from, back.to).back();
    left_to_do_ += std::max(0.0, profile.backward.time - alone);
    profile.backward.time = std::min(profile.backward.time, alone);
    profile.split = split_pass(facts_.split[at(kind)], Phase::kBackward, b);
    extract_deferred(facts_.weights[at(kind)], profile.split);
    extract_prologue(kind, profile.backward);
    extract_scattered(back, b, profile);
    extract_saved(profile, Phase::kBackward, b);
    for (const std::size_t i : facts_.pass_instrs(Phase::kBackward, b))
      if (facts_.for_weights[i] && !communicates(facts_.streams[i]))
        profile.weight_gradients += durations_[i];
  }

  // Profiles of embedding and head: the time of a step that no layer accounts for.
  void extract_ends() {
    const std::size_t last = first_product(kMiddleMicroBatch, Phase::kForward, layers_ - 1);
    const std::size_t front = first_product(kMiddleMicroBatch, Phase::kBackward, 0);
    const std::size_t next = first_product(kMiddleMicroBatch + 1, Phase::kForward, 0);
    profile_.last.forward = pass_profile(facts_.head, Phase::kForward, layers_);
    profile_.last.forward.time =
        begins_[facts_.head.to] - begins_[last] - profile_.kinds.back().forward.time + left_to_do_;
    profile_.last.split = split_pass(facts_.split_head, Phase::kBackward, layers_);
    profile_.last.split.deferred = profile_.last.split.exchanged = profile_.last.split.weights;
    const PassProfile backward = pass_profile(facts_.head, Phase::kBackward, layers_);
    for (std::size_t s = 0; s < kStreams; ++s) {
      profile_.last.forward.busy[s] += backward.busy[s];
      profile_.last.forward.busy_bound[s] += backward.busy_bound[s];
    }
    profile_.first.forward.time = begins_[next] - begins_[front] - profile_.kinds.front().backward.time;
    for (const auto& [of, instrs] : facts_.middle)
      if (of.second < 0)
        for (const std::size_t i : instrs) keep_busy(profile_.first.forward, i);
    extract_saved(profile_.last, Phase::kForward, layers_),
        extract_saved(profile_.last, Phase::kBackward, layers_);
    extract_saved(profile_.first, Phase::kForward, -1), extract_saved(profile_.first, Phase::kBackward, -1);
  }

  void add_once_a_step() {
    bool updated = false;
    for (const std::size_t i : facts_.once) {
      const InstrSite& h = sites_[i];
      const bool comm = communicates(facts_.streams[i]);
      const bool optimizer = facts_.updates[i];
      updated = updated || optimizer;
      if (h.phase == Phase::kUpdate && !comm && !optimizer) profile_.at_the_end += durations_[i];
      if (!facts_.kinds.is_representative(h.layer)) continue;
      LayerProfile& profile = facts_.kinds.profile_of(profile_, h.layer);
      if (h.phase == Phase::kBegin)
        (comm ? profile.begin_comm : profile.begin) += durations_[i],
            profile.expert_begin += !comm && facts_.expert[i] ? durations_[i] : 0;
      else if (optimizer)
        profile.optimizer += durations_[i], profile.expert_optimizer += facts_.expert[i] ? durations_[i] : 0;
      else if (comm)
        (updated ? profile.redistribution : profile.exchange) += durations_[i];
    }
  }

  std::int64_t handed_over() const {
    const Graph& graph = facts_.step.graph();
    std::int64_t bytes = 0;
    for (const TensorId t : facts_.handed)
      bytes += size_of(graph[t].dtype) * local_elements(graph, t, graph.layouts[t.index()], program_.mesh);
    return bytes;
  }

  const Facts& facts_;
  const Program& program_;
  const std::vector<double>&durations_, &least_;
  int layers_;
  const std::vector<InstrSite>& sites_;
  const InstrOrder& order_;
  std::vector<double> begins_;
  double left_to_do_ = 0;  // ns, once in a micro-batch
  StepProfile profile_;
};

StateBytes StateBytes::operator-(const StateBytes& o) const {
  return {copies - o.copies, weights - o.weights, moments - o.moments, gradients - o.gradients,
          constants - o.constants};
}

void StateBytes::add(const StateBytes& o, std::int64_t times) {
  copies += times * o.copies, weights += times * o.weights, moments += times * o.moments;
  gradients += times * o.gradients, constants += times * o.constants;
}

std::int64_t StateBytes::at_least(std::int32_t zero, std::int32_t devices) const {
  if (zero == 0) return all();
  if (zero == 3) return part_of(copies + weights + moments + gradients, devices);
  const std::int64_t kept = copies > 0 ? copies + part_of(weights, devices) : weights;
  return kept + part_of(moments, devices) + (zero == 2 ? part_of(gradients, devices) : gradients);
}

ProfileExtractor::ProfileExtractor(const ParametricStep& step, std::vector<int> kind_of)
    : facts_(std::make_unique<Facts>(step, LayerKinds(std::move(kind_of)))) {}
ProfileExtractor::~ProfileExtractor() = default;

StepProfile ProfileExtractor::profile(const std::vector<double>& durations,
                                      const std::vector<double>& least) const {
  return Extraction(*facts_, durations, least).run();
}

}  // namespace hyperrun

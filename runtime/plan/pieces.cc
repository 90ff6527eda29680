#include "runtime/plan/pieces.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/early_updates.h"
#include "runtime/plan/homes.h"
#include "runtime/plan/instr_order.h"
#include "runtime/plan/layer_kinds.h"
#include "runtime/plan/pieces_memory.h"
#include "runtime/plan/scattering.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Of a backward pass: what scattering its gradients takes where the longest path is looked for.
constexpr std::array kScatteringTakes{1.0 / 6, 1.0 / 2};

// Activations that the layer behind the first takes of it, as they are when the step is settled.
std::vector<TensorId> handed_over(const SizedStep& step) {
  const Graph& graph = step.graph();
  std::vector<bool> made(graph.tensors.size());
  std::vector<TensorId> list;
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::kForward) continue;
    for (const TensorId t : node.inputs)
      if (node.layer == 1 && made[t.index()]) made[t.index()] = false, list.push_back(step.settled(t));
    for (const TensorId t : node.outputs) made[t.index()] = node.layer == 0;
  }
  return list;
}

}  // namespace

struct Outline::Facts {
  Facts(const SizedStep& of, LayerKinds of_layers)
      : step(of),
        kinds(std::move(of_layers)),
        layers(kinds.layers()),
        homes(homes_of(of, layers)),
        order(of.program()),
        stays(stays_of(of.program(), homes, layers)),
        memory(of, kinds, homes, stays),
        handed(handed_over(of)),
        update_last(!may_come_early(of.program())) {
    for (std::size_t i = 0; i < homes.size(); ++i) {
      streams.push_back(of.program().instrs[i].stream);
      updates.push_back(std::holds_alternative<instr::AdamW>(of.program().instrs[i].op));
      for_weights.push_back(homes[i].for_weights), for_others.push_back(!homes[i].for_weights);
      const std::vector<TensorId>& made = of.node(i).outputs;
      spread.push_back(!made.empty() && lies_over_experts(step, made.front()));
    }
    for (std::size_t i = 0; i < homes.size(); ++i) {
      const Home& h = homes[i];
      if (streams[i] == StreamKind::kCube) first_products.try_emplace({h.micro_batch, h.phase, h.layer}, i);
      if (h.micro_batch == kMiddle) middle[{h.phase, h.layer}].push_back(i);
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

  // In a backward pass: what cannot begin before the layer behind has handed on its gradient.
  struct Chain {
    std::size_t from = 0;
    std::vector<bool> behind;  // until the first product of the next piece
    bool has_others = false;   // some need not wait for it
  };

  // From the first product of a piece to that of the next one, in the middle micro-batch.
  struct Span {
    std::size_t from = 0, to = 0;
    std::vector<bool> behind;  // that the first one comes before, whatever streams do meanwhile
  };

  Span span(const std::pair<Phase, int>& of, const std::pair<Phase, int>& next) const {
    Span s{first_products.at({kMiddle, of.first, of.second}),
           first_products.at({kMiddle, next.first, next.second}),
           {}};
    HR_CHECK(s.from <= s.to, "a layer's products come before those of the one before it");
    std::vector<bool> source(s.to + 1);
    source[s.from] = true;
    s.behind = order.behind(source, s.from, s.to);
    return s;
  }

  // The same without gradients of weights.
  Span split_span(const std::pair<Phase, int>& of, const std::pair<Phase, int>& next) const {
    const auto first = [&](const std::pair<Phase, int>& piece) {
      std::size_t i = first_products.at({kMiddle, piece.first, piece.second});
      while (for_weights[i] || streams[i] != StreamKind::kCube) ++i;
      return i;
    };
    Span s{first(of), first(next), {}};
    std::vector<bool> source(s.to + 1);
    source[s.from] = true;
    s.behind = order.behind(source, s.from, s.to, &for_weights);
    return s;
  }

  // From the first gradient of weights of a layer to that of the next one.
  Span weights_span(int layer) const {
    const auto first = [&](int of) {
      std::size_t i = first_products.at({kMiddle, Phase::kBackward, of});
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
      return homes[i].micro_batch == kMiddle && homes[i].phase == Phase::kBackward && homes[i].layer == of;
    };
    std::vector<bool> sources(homes.size()), handed_on(program.buffers.size());
    Chain chain;
    const std::size_t to = first_products.at({kMiddle, Phase::kBackward, layer - 1});
    chain.from = first_products.at({kMiddle, Phase::kBackward, layer});
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
    AxisList cut_by;  // homes.h
  };

  // Of weights that ZeRO splits over all that repeat them, if it splits the width. What has been exchanged
  // when it is added up is there before.
  void find_gradients(const Program& program) {
    std::vector<std::size_t> writer(program.buffers.size(), homes.size());
    std::map<std::size_t, std::size_t> made;  // by buffer: the instruction
    for (std::size_t i = 0; i < homes.size(); ++i) {
      if (homes[i].micro_batch != kMiddle || homes[i].phase != Phase::kBackward) continue;
      const Instr& instr = program.instrs[i];
      const bool adds = std::holds_alternative<instr::Accumulate>(instr.op);
      for (const Operand& o : instr.out) {
        const std::size_t b = o.buffer.index();
        writer[b] = adds ? writer[instr.in[0].buffer.index()] : i;
        if (program.buffers[b].category == Category::kGradients && stays[b].lasts &&
            is_scattered(step.tensor_in(b)))
          made[b] = writer[b];
      }
    }
    for (const auto& [b, i] : made)
      if (i < homes.size()) gradients.push_back({i, b, cut_by(step, step.tensor_in(b))});
  }

  bool is_scattered(TensorId t) const {
    return t.valid() && !lies_over_experts(step, t) && has_width(step, t);
  }

  // Of the middle micro-batch.
  const std::vector<std::size_t>& of_piece(Phase phase, int layer) const {
    static const std::vector<std::size_t> kNone;
    const auto found = middle.find({phase, layer});
    return found == middle.end() ? kNone : found->second;
  }

  const SizedStep& step;
  LayerKinds kinds;
  int layers;
  std::vector<Home> homes;
  InstrOrder order;
  std::vector<Stay> stays;  // by buffer
  PiecesMemory memory;
  std::vector<TensorId> handed;
  bool update_last;  // as Pieces has it
  // By instruction: its stream, whether it is the optimizer's, whether no other stage waits for it, whether
  // what it makes lies over the expert axis.
  std::vector<StreamKind> streams;
  std::vector<bool> updates, for_weights, for_others, spread;
  // By micro-batch, phase and layer; as a piece without products has none, the first of what follows.
  std::map<std::tuple<int, Phase, int>, std::size_t> first_products;
  // Of these micro-batches, by phase and layer: in their order.
  std::map<std::pair<Phase, int>, std::vector<std::size_t>> first, middle;
  std::vector<std::size_t> once;                        // a step, in their order
  std::vector<Made> gradients;                          // that may be scattered
  std::vector<Span> forward, backward, split, weights;  // by kind
  Span head, split_head;                                // until the way back begins
  std::vector<Chain> chains;                            // by kind
};

class Outline::Taking {
 public:
  Taking(const Facts& facts, const std::vector<double>& durations, const std::vector<double>& least)
      : facts_(facts),
        program_(facts.step.program()),
        durations_(durations),
        least_(least),
        layers_(facts.layers),
        homes_(facts.homes),
        order_(facts.order),
        begins_(order_.begins(durations, 0, first_product(kMiddle + 1, Phase::kForward, 0))) {}

  Pieces run() {
    pieces_.kinds.resize(at(facts_.kinds.count()));
    for (std::size_t k = 0; k < pieces_.kinds.size(); ++k) take_kind(static_cast<int>(k));
    take_ends();
    add_once_a_step();
    facts_.memory.take(pieces_);
    pieces_.update_last = facts_.update_last;
    pieces_.message = handed_over();
    return std::move(pieces_);
  }

 private:
  std::size_t first_product(int micro_batch, Phase phase, int layer) const {
    return facts_.first_products.at({micro_batch, phase, layer});
  }

  // What begins before its first product, as recomputing may on another stream, makes its bound no longer.
  Piece piece(const Facts::Span& span, Phase phase, int layer) const {
    Piece p;
    p.time = begins_[span.to] - begins_[span.from];
    const std::vector<double> alone = order_.begins_behind(least_, span.behind, span.from);
    p.bound = alone.back();
    for (const std::size_t i : facts_.of_piece(phase, layer)) {
      keep_busy(p, i);
      if (i < span.from || i > span.to || facts_.streams[i] != StreamKind::kCube) continue;
      const double end = alone[i - span.from] + least_[i];
      p.ending = std::max(p.ending, end);
      if (!facts_.for_weights[i]) p.handing = std::max(p.handing, end);
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
    for (const std::size_t i : facts_.of_piece(phase, layer)) {
      if (facts_.streams[i] != StreamKind::kCube) continue;
      if (facts_.for_weights[i])
        p.weights += least_[i];
      else if (span.from <= i && i <= span.to)
        p.ending = std::max(p.ending, alone[i - span.from] + least_[i]);
    }
    return p;
  }

  // Gradients of weights by themselves. What they are scattered by stands on the stream on which the next
  // product's activations are gathered.
  void take_put_off(const Facts::Span& span, SplitPass& p) const {
    p.put_off = order_.begins_behind(durations_, span.behind, span.from, &facts_.for_others).back();
    double collectives = 0;
    for (std::size_t i = span.from; i < span.to; ++i)
      if (facts_.for_weights[i] && communicates(facts_.streams[i])) collectives += durations_[i];
    p.exchanged = std::max(p.put_off, collectives);
  }

  void take_ahead(int kind, Piece& backward) const {
    const Facts::Chain& chain = facts_.chains[at(kind)];
    if (!chain.has_others) return;
    const auto behind = [&](const std::vector<double>& d) {
      return order_.begins_behind(d, chain.behind, chain.from).back();
    };
    backward.ahead = std::max(0.0, backward.time - behind(durations_));
    backward.ahead_bound = std::max(0.0, backward.bound - behind(least_));
  }

  void take_scattered(const Facts::Span& span, int layer, LayerPieces& pieces) const {
    std::vector<std::int64_t> bytes(homes_.size());
    std::int64_t all = 0;
    for (const auto& [i, b, cut] : facts_.gradients) {
      if (i < span.from || i >= span.to) continue;
      const std::int64_t own = program_.buffers[b].bytes.value / program_.mesh.size(cut);
      bytes[i] += own, all += own;
    }
    if (all == 0) return;
    const Scattering scattering(order_, facts_.streams, least_, bytes);
    for (std::size_t k = 0; k < kScatteringTakes.size(); ++k) {
      const double per_byte = kScatteringTakes[k] * pieces.backward.bound / static_cast<double>(all);
      const std::vector<Scattered> begins = scattering.begins(span.from, span.to, per_byte);
      pieces.scattered[k].bound = begins.back();
      Scattered& ending = pieces.scattered[k].ending;
      for (const std::size_t i : facts_.of_piece(Phase::kBackward, layer)) {
        if (i < span.from || i > span.to || facts_.streams[i] != StreamKind::kCube) continue;
        const Scattered end{begins[i - span.from].time + least_[i], begins[i - span.from].bytes};
        if (end.at(per_byte) > ending.at(per_byte)) ending = end;
      }
    }
  }

  void keep_busy(Piece& p, std::size_t i) const {
    const auto stream = static_cast<std::size_t>(facts_.streams[i]);
    p.busy[stream] += durations_[i];
    p.least_busy[stream] += least_[i];
  }

  // The first micro-batch's pass beside the middle one's.
  void take_saved(LayerPieces& pieces, Phase phase, int layer) const {
    const auto add = [&](const auto& list, double sign) {
      const auto found = list.find({phase, layer});
      if (found == list.end()) return;
      for (const std::size_t i : found->second)
        pieces.saved[static_cast<std::size_t>(facts_.streams[i])] += sign * least_[i];
    };
    add(facts_.middle, 1), add(facts_.first, -1);
    for (double& s : pieces.saved) s = std::max(0.0, s);
  }

  void take_kind(int kind) {
    LayerPieces& pieces = pieces_.kinds[at(kind)];
    const int f = facts_.kinds.last_of(kind) - 1, b = facts_.kinds.second_of(kind);
    pieces.forward = piece(facts_.forward[at(kind)], Phase::kForward, f);
    const Facts::Span& back = facts_.backward[at(kind)];
    pieces.backward = piece(back, Phase::kBackward, b);
    // What streams have left to do when it begins, as gradients of the head to exchange, it waits for once in
    // a micro-batch and not in each layer.
    const double alone = order_.begins(durations_, back.from, back.to).back();
    left_to_do_ += std::max(0.0, pieces.backward.time - alone);
    pieces.backward.time = std::min(pieces.backward.time, alone);
    pieces.split = split_pass(facts_.split[at(kind)], Phase::kBackward, b);
    take_put_off(facts_.weights[at(kind)], pieces.split);
    take_ahead(kind, pieces.backward);
    take_scattered(back, b, pieces);
    take_saved(pieces, Phase::kBackward, b);
    for (const std::size_t i : facts_.of_piece(Phase::kBackward, b))
      if (facts_.for_weights[i] && !communicates(facts_.streams[i])) pieces.weight_gradients += durations_[i];
  }

  // What a step takes besides its layers.
  void take_ends() {
    const std::size_t last = first_product(kMiddle, Phase::kForward, layers_ - 1);
    const std::size_t front = first_product(kMiddle, Phase::kBackward, 0);
    const std::size_t next = first_product(kMiddle + 1, Phase::kForward, 0);
    pieces_.last.forward = piece(facts_.head, Phase::kForward, layers_);
    pieces_.last.forward.time =
        begins_[facts_.head.to] - begins_[last] - pieces_.kinds.back().forward.time + left_to_do_;
    pieces_.last.split = split_pass(facts_.split_head, Phase::kBackward, layers_);
    pieces_.last.split.put_off = pieces_.last.split.exchanged = pieces_.last.split.weights;
    const Piece backward = piece(facts_.head, Phase::kBackward, layers_);
    for (std::size_t s = 0; s < kStreams; ++s) {
      pieces_.last.forward.busy[s] += backward.busy[s];
      pieces_.last.forward.least_busy[s] += backward.least_busy[s];
    }
    pieces_.first.forward.time = begins_[next] - begins_[front] - pieces_.kinds.front().backward.time;
    for (const auto& [of, instrs] : facts_.middle)
      if (of.second < 0)
        for (const std::size_t i : instrs) keep_busy(pieces_.first.forward, i);
    take_saved(pieces_.last, Phase::kForward, layers_), take_saved(pieces_.last, Phase::kBackward, layers_);
    take_saved(pieces_.first, Phase::kForward, -1), take_saved(pieces_.first, Phase::kBackward, -1);
  }

  void add_once_a_step() {
    bool updated = false;
    for (const std::size_t i : facts_.once) {
      const Home& h = homes_[i];
      const bool comm = communicates(facts_.streams[i]);
      const bool optimizer = facts_.updates[i];
      updated = updated || optimizer;
      if (h.phase == Phase::kUpdate && !comm && !optimizer) pieces_.at_the_end += durations_[i];
      if (!facts_.kinds.stands(h.layer)) continue;
      LayerPieces& pieces = facts_.kinds.pieces_of(pieces_, h.layer);
      if (h.phase == Phase::kBegin)
        (comm ? pieces.begin_comm : pieces.begin) += durations_[i],
            pieces.spread_begin += !comm && facts_.spread[i] ? durations_[i] : 0;
      else if (optimizer)
        pieces.optimizer += durations_[i], pieces.spread_optimizer += facts_.spread[i] ? durations_[i] : 0;
      else if (comm)
        (updated ? pieces.redistribution : pieces.exchange) += durations_[i];
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
  const std::vector<Home>& homes_;
  const InstrOrder& order_;
  std::vector<double> begins_;
  double left_to_do_ = 0;  // ns, once in a micro-batch
  Pieces pieces_;
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

Outline::Outline(const SizedStep& step, std::vector<int> kind_of)
    : facts_(std::make_unique<Facts>(step, LayerKinds(std::move(kind_of)))) {}
Outline::~Outline() = default;

Pieces Outline::pieces(const std::vector<double>& durations, const std::vector<double>& least) const {
  return Taking(*facts_, durations, least).run();
}

}  // namespace hyperrun

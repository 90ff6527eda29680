#include "runtime/plan/closed_form.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/plan/least_pieces.h"

namespace hyperrun {
namespace {

// One device of the pipeline.
struct Device {
  double forward = 0, backward = 0;              // of a micro-batch, all its stages
  double forward_bound = 0, backward_bound = 0;  // the same, at least
  double weight_gradients = 0;                   // of `backward`
  // Of `backward` and its bound: what its stages compute before they need what the next stage hands on.
  double ahead = 0, ahead_bound = 0;
  double computing = 0;                               // of forward and backward
  std::array<double, kStreams> busy{}, least_busy{};  // of both
  std::array<double, kStreams> saved{};               // at most, of the first micro-batch
  // Of the first of its stages, at least; `back_bound`: behind what it computes ahead.
  double fill_bound = 0, back_bound = 0;
  double exchange = 0, optimizer = 0, redistribution = 0, begin = 0, begin_comm = 0;  // once a step
  double one_exchange = 0;                      // of the layer whose gradients come last
  double least_exchange = 0, least_gather = 0;  // of its layers' gradients and weights, once a step
  double one_forward = 0;                       // of a layer, at least
  bool all_exchange = true;                     // its layers all communicate in their forward passes
  std::int64_t state = 0, kept = 0, peak = 0;
  std::int64_t end_kept = 0, end_peak = 0;  // behind the layers: `end_kept` is not in `kept`
  std::int64_t largest_kept = 0;            // of a layer
  std::int64_t put_off = 0;                 // of a micro-batch
  std::int64_t kept_here = 0, put_off_here = 0;
  std::int64_t gradients = 0;                      // of `state`, at most
  std::int64_t copies = 0;                         // of `state`
  Movable once, masters, weights, summed, moving;  // Forecast has these; `moving`: of a micro-batch
  std::int64_t largest_movable = 0;
  std::int64_t least_swept = 0;   // weights and gradients, at least
  int deeper = 0;                 // layers that recompute more,
  bool may_be_deeper = false;     // or may do so
  std::int64_t first_copies = 0;  // of what the last micro-batch does not need for long
};

enum class Of : std::uint8_t { kStep, kBound, kBoundOfMore };

class Form {
 public:
  // `lying`: of bounds; may be null.
  Form(const Strategy& s, const ModelSpec& model, std::int32_t micro_batches, const LayersPieces& pieces,
       double message, Of of, const Lying* lying)
      : s_(s),
        model_(model),
        pieces_(*pieces.pieces),
        layers_(pieces),
        m_(micro_batches),
        message_(message),
        least_(of == Of::kBound || lying != nullptr),
        any_(of == Of::kBoundOfMore),
        lying_(lying) {
    devices_.reserve(static_cast<std::size_t>(s[PlanAxis::kPipeline]));
    HR_CHECK((s.deeper == 0 && of != Of::kBoundOfMore) || pieces.deeper != nullptr);
  }

  Forecast run() {
    spread_layers();
    Forecast f;
    take_time(f);
    take_memory(f);
    return f;
  }

 private:
  static constexpr auto at(StreamKind s) { return static_cast<std::size_t>(s); }

  int kind_of(int layer) const {
    return pieces_.kinds.size() > 1 && layer >= model_.experts.dense_layers ? 1 : 0;
  }

  // Of the device that is looked at.
  const LayerPieces& of_kind(int kind) const { return layers_.pieces->kinds[static_cast<std::size_t>(kind)]; }
  const LayerPieces& deeper_of_kind(int kind) const {
    return layers_.deeper->kinds[static_cast<std::size_t>(kind)];
  }

  // Layers [first, first + count) as a stage of the device: alike ones at once.
  void add_stage(Device& d, int first, int count) {
    const int dense =
        pieces_.kinds.size() > 1 ? std::clamp(model_.experts.dense_layers - first, 0, count) : 0;
    if (dense > 0) add_kind(d, 0, dense);
    if (count > dense) add_kind(d, static_cast<int>(pieces_.kinds.size()) - 1, count - dense);
    if (count == 0) return;
    end_stages(d, kind_of(first + count - 1), 1);
    go_ahead(d, kind_of(first + count - 1), 1);
  }

  // As long as the device has some that recompute more, these.
  void add_kind(Device& d, int kind, int count) {
    const int deeper = std::min(count, s_.deeper - d.deeper);
    if (deeper > 0) {
      come_between(d);
      add_layers(d, deeper_of_kind(kind), deeper);
      d.deeper += deeper;
    }
    if (count == deeper) return;
    if (any_)
      add_any(d, kind, count - deeper);
    else
      add_layers(d, of_kind(kind), count - deeper);
  }

  void add_any(Device& d, int kind, int count) {
    const LayerPieces &usual = of_kind(kind), &more = deeper_of_kind(kind);
    come_between(d);
    add_layers(d, least_of(usual, more), count);
    d.one_forward = std::max({d.one_forward, usual.forward.bound, more.forward.bound});
    d.may_be_deeper = true;
  }

  static bool has_deeper(const Device& d) { return d.deeper > 0 || d.may_be_deeper; }

  // Once on each device: those that recompute more are its first ones.
  void come_between(Device& d) const {
    if (has_deeper(d)) return;
    const Shorter shorter = between(layers_);
    d.forward_bound += shorter.forward, d.backward_bound += shorter.backward;
  }

  void add_layers(Device& d, const LayerPieces& layer, int count) const {
    const double times = count;
    add(d, layer, count);
    d.largest_kept = std::max(d.largest_kept, layer.kept);
    d.forward_bound += times * layer.forward.bound, d.backward_bound += times * layer.backward.bound;
    d.peak = std::max({d.peak, layer.forward_peak - layer.kept, layer.backward_peak - layer.kept});
    if (lying_ != nullptr) add_data_traffic(d, layer, times);
  }

  // ZeRO 2 adds gradients up behind each micro-batch, ZeRO 3 gathers weights for each pass as well, others
  // copies of them once, before all.
  void add_data_traffic(Device& d, const LayerPieces& layer, double times) const {
    const auto part = [&](std::int64_t StateBytes::*bytes, double each, double each_spread) {
      const auto all = static_cast<double>(layer.state.*bytes),
                 spread = static_cast<double>(layer.spread.*bytes);
      return times * ((all - spread) * each + spread * each_spread);
    };
    double& comm = d.least_busy[at(StreamKind::kComm)];
    const double reduced = part(&StateBytes::gradients, data_.reduce, data_.reduce_spread);
    d.least_exchange += reduced;
    if (s_.zero >= 2) comm += reduced;
    d.one_forward = std::max(d.one_forward, layer.forward.bound);
    d.all_exchange = d.all_exchange && layer.forward.least_busy[at(StreamKind::kComm)] > 0;
    if (s_.zero == 0) return;
    const bool copies = layer.state.copies > 0;
    const double gathered =
        part(copies ? &StateBytes::copies : &StateBytes::weights, data_.gather, data_.gather_spread);
    if (s_.zero == 3)
      comm += 2 * gathered;
    else if (copies)
      d.least_gather += gathered;
  }

  // So many, whose last layer is of this kind.
  void end_stages(Device& d, int kind, double times) const {
    const LayerPieces& last = of_kind(kind);
    double forward = shorter_at_the_end(last.forward), backward = shorter_at_the_end(last.backward);
    if (has_deeper(d)) {
      const LayerPieces& more = deeper_of_kind(kind);
      forward = shorter_at_the_end(last.forward, more.forward);
      backward = shorter_at_the_end(last.backward, more.backward);
    }
    d.forward_bound += times * forward, d.backward_bound += times * backward;
    d.one_exchange = std::max(d.one_exchange, last.exchange);
  }

  // So many stages, whose last layer is of this kind: where others hand on to them, they need not wait to
  // recompute it.
  void go_ahead(Device& d, int kind, double times) const {
    const Piece& last = of_kind(kind).backward;
    d.ahead += times * last.ahead;
    if (any_) {
      d.ahead_bound += times * least_of(of_kind(kind), deeper_of_kind(kind)).backward.ahead_bound;
      return;
    }
    const double deeper = d.deeper > 0 ? deeper_of_kind(kind).backward.ahead_bound : 0;
    d.ahead_bound += times * std::max(last.ahead_bound, deeper);
  }

  void add(Device& d, const LayerPieces& layer, int count) const {
    const double times = count;
    d.forward += times * layer.forward.time, d.backward += times * layer.backward.time;
    d.weight_gradients += times * layer.weight_gradients;
    for (std::size_t s = 0; s < kStreams; ++s) {
      d.busy[s] += times * (layer.forward.busy[s] + layer.backward.busy[s]);
      d.least_busy[s] += times * (layer.forward.least_busy[s] + layer.backward.least_busy[s]);
      d.saved[s] += times * layer.saved[s];
    }
    d.exchange += times * layer.exchange, d.redistribution += times * layer.redistribution;
    d.optimizer += times * left(layer.optimizer, layer.spread_optimizer, 1);
    d.begin += times * left(layer.begin, layer.spread_begin, 1);
    d.begin_comm += times * layer.begin_comm;
    d.state += count * (least_ ? least_state(layer) : layer.state.all());
    d.gradients += count * layer.state.gradients, d.copies += count * layer.state.copies;
    d.kept += count * layer.kept, d.kept_here += count * layer.kept_here;
    d.put_off += count * layer.put_off, d.put_off_here += count * layer.put_off_here;
    d.least_swept += count * (left(layer.state.used(), layer.spread.used(), 3) +
                              left(layer.state.gradients, layer.spread.gradients, 2));
    if (!least_) add_movable(d, layer, count);
  }

  // What ZeRO leaves a device at least of what the pieces have whole, where it splits that from `zero` on:
  // of what lies over the expert axis less than of the rest.
  template <class T>
  T left(T all, T spread, std::int32_t zero) const {
    if (!least_ || s_.zero < zero) return all;
    const std::int32_t devices = s_.zero_devices();
    return (all - spread) / devices + spread / (devices / s_[PlanAxis::kExpert]);
  }

  std::int64_t least_state(const LayerPieces& layer) const {
    const std::int32_t devices = s_.zero_devices();
    return (layer.state - layer.spread).at_least(s_.zero, devices) +
           layer.spread.at_least(s_.zero, devices / s_[PlanAxis::kExpert]);
  }

  // Where products take copies the optimizer's weights are of no use between the step's begin and its end.
  void add_movable(Device& d, const LayerPieces& layer, int count) const {
    const auto plus = [&](Movable& m, std::int64_t StateBytes::*part) {
      m.bytes += count * layer.state.*part, m.tensors += count * layer.tensors.*part;
    };
    const bool copies = layer.state.copies > 0;
    if (copies) plus(d.masters, &StateBytes::weights), plus(d.once, &StateBytes::weights);
    plus(d.once, &StateBytes::moments);
    plus(d.weights, copies ? &StateBytes::copies : &StateBytes::weights);
    plus(d.summed, &StateBytes::gradients);
    d.moving.bytes += count * (layer.kept - layer.kept_here), d.moving.tensors += count * layer.kept_tensors;
    d.largest_movable = std::max(d.largest_movable, layer.largest_movable);
  }

  int shares() const { return model_.layers + s_.lead + s_.tail; }

  int layers_before(int stage) const {
    const int stages = s_[PlanAxis::kPipeline] * s_.chunks;
    const int even = shares() / stages * stage + std::min(stage, shares() % stages);
    return even - (stage > 0 ? s_.lead : 0);
  }

  bool lies_apart(int device) const {
    return lying_ != nullptr && !lying_->apart.empty() && lying_->apart[static_cast<std::size_t>(device)];
  }

  void look_at(int device, const LayersPieces& usual) {
    if (lying_ == nullptr) return;
    const bool apart = lies_apart(device);
    layers_ = apart ? lying_->pieces_apart : usual;
    data_ = apart ? lying_->data_apart : lying_->data;
  }

  // In the middle of a pipeline, with layers of one kind.
  bool like_the_one_before(int device) const {
    const int stages = s_[PlanAxis::kPipeline];
    return device > 1 && lies_apart(device) == lies_apart(device - 1) && device < stages - 1 &&
           shares() % (stages * s_.chunks) % stages != device &&
           (pieces_.kinds.size() == 1 || layers_before(device - 1) >= model_.experts.dense_layers);
  }

  void spread_layers() {
    const int stages = s_[PlanAxis::kPipeline];
    const LayersPieces usual = layers_;
    for (int d = 0; d < stages; ++d) {
      look_at(d, usual);
      if (like_the_one_before(d)) {
        devices_.push_back(devices_.back());
        continue;
      }
      Device& device = devices_.emplace_back();
      if (pieces_.kinds.size() == 1) {
        add_kind(device, 0, layers_of_device(s_, model_.layers, d));
        end_stages(device, 0, s_.chunks);
        go_ahead(device, 0, s_.chunks);
      } else {
        for (int v = d; v < stages * s_.chunks; v += stages)
          add_stage(device, layers_before(v), layers_of_stage(s_, model_.layers, v));
      }
    }
    for (std::size_t d = 0; d < devices_.size(); ++d)
      bound_first_stage(devices_[d], static_cast<int>(d), usual);
    add_ends();
    for (Device& d : devices_) d.computing = d.busy[at(StreamKind::kCube)] + d.busy[at(StreamKind::kVector)];
  }

  // What a device's first pass hands on after, and its last one ends with.
  void bound_first_stage(Device& d, int device, const LayersPieces& usual) {
    d.fill_bound = d.forward_bound, d.back_bound = d.backward_bound - d.ahead_bound;
    if (s_.chunks == 1) return;
    look_at(device, usual);
    Device stage;
    add_stage(stage, layers_before(device), layers_of_stage(s_, model_.layers, device));
    d.fill_bound = stage.forward_bound, d.back_bound = stage.backward_bound - stage.ahead_bound;
  }

  void add_ends() {
    const LayerPieces &before = pieces_.first, &behind = pieces_.last;
    Device &first = devices_.front(), &last = devices_.back();
    add(first, before, 1);
    first.first_copies = before.state.copies;
    first.peak = std::max({first.peak, before.forward_peak, before.backward_peak - before.kept});
    add(last, behind, 1);
    if (devices_.size() > 1) add_state(first, pieces_.first_too), add_state(last, pieces_.last_too);
    if (s_.schedule != PlanSchedule::kGpipe)  // the way back begins at once
      last.kept -= behind.kept, last.kept_here -= behind.kept_here, last.end_kept = behind.kept;
    last.forward_bound += behind.forward.bound;
    last.end_peak = std::max(behind.forward_peak, behind.backward_peak) - (behind.kept - last.end_kept);
  }

  void add_state(Device& d, const StateBytes& state) const {
    d.state += least_ ? state.at_least(s_.zero, s_.zero_devices()) : state.all();
    d.gradients += state.gradients, d.copies += state.copies;
  }

  // At least: both passes of all micro-batches, on whichever stream is busiest. Weights that ZeRO gathers in
  // them are there before the first pass begins, and what it scatters of the last one holds up nobody's way
  // back: where it does, collectives bound a step apart.
  double passes_bound(const Device& d) const {
    // Gradients of weights that are put off fill what their pass waits for.
    const double put_off = s_.schedule == PlanSchedule::kZeroBubble ? d.weight_gradients : 0;
    double busiest = m_ * (d.forward_bound + std::max(0.0, d.backward_bound - put_off)) - saved(d);
    for (std::size_t s = 0; s < kStreams; ++s)
      if (s != at(StreamKind::kComm) || !exchanges_state())
        busiest = std::max(busiest, stream_bound(d, static_cast<StreamKind>(s)));
    return busiest;
  }
  double stream_bound(const Device& d, StreamKind s) const {
    return m_ * d.least_busy[at(s)] - d.saved[at(s)];
  }
  // A pass is no more shorter than all its instructions together.
  static double saved(const Device& d) { return std::accumulate(d.saved.begin(), d.saved.end(), 0.0); }
  bool exchanges_state() const { return s_.zero >= 2; }

  // Before gradients of the last micro-batch are there, which are added up then: all forward passes and all
  // backward passes but its own have ended, and of several stages a device those of the last round of all but
  // its last stage are not wanted. Zero bubble may put off gradients of weights. Copies of weights are
  // gathered before anything else is communicated: no more than a layer is computed ahead of them where each
  // layer communicates, else no more than a round of forward passes. `start`: of the first pass, else.
  double until_exchange(const Device& d, double start) const {
    const double parts = s_.chunks;
    const std::int32_t round = s_.chunks > 1 ? std::min(m_, s_[PlanAxis::kPipeline]) : 1;
    const double off = s_.schedule == PlanSchedule::kZeroBubble ? d.weight_gradients : 0;
    const double backward = (m_ - round + (round - 1) / parts) * std::max(0.0, d.backward_bound - off);
    const double ahead = d.all_exchange ? d.one_forward : round * d.forward_bound;
    return std::max(start, d.least_gather - ahead) + m_ * d.forward_bound +
           std::max(0.0, backward - saved(d));
  }

  static double pass(const Device& d) {
    return std::max(d.forward + d.backward, *std::ranges::max_element(d.busy));
  }

  void take_time(Forecast& f) {
    const double parts = s_.chunks;
    double fill = 0, back = 0, back_bound = 0, end = 0;
    // Of a device's first pass: not before its own begin, nor before what comes from the device before it.
    double start = 0, start_bound = 0;
    double update = 0, exchanged = 0;
    const bool zero_bubble = s_.schedule == PlanSchedule::kZeroBubble;
    const double round = round_trip();
    // Of the last round of micro-batches through a device's stages, which they may not fill.
    const std::int32_t rest = m_ % s_[PlanAxis::kPipeline], last_round = rest > 0 ? rest : m_;
    for (const Device& d : devices_) {
      const double passes = m_ * pass(d);
      start = std::max({start, d.begin, d.begin_comm}), start_bound = std::max(start_bound, d.begin);
      double way = fill + back + (parts - 1) * std::max(0.0, round - last_round * pass(d) / parts);
      if (zero_bubble) way = std::max(0.0, way - 2 * back_weights_);
      const double own = start - fill + way + passes + exposed_exchange(d);
      if (own > end) {
        end = own;
        f.bubble = way;
        f.computing = m_ * d.computing;
        f.exposed = std::max(0.0, passes - f.computing);
        f.forward = passes * d.forward / (d.forward + d.backward);
        f.backward = passes - f.forward;
      }
      const double back_or_gap = zero_bubble ? 0 : back_bound;
      f.bound = std::max(f.bound, start_bound + passes_bound(d) + back_or_gap);
      if (exchanges_state()) f.bound = std::max(f.bound, stream_bound(d, StreamKind::kComm));
      exchanged = std::max(exchanged, until_exchange(d, start_bound) + d.least_exchange);
      update = std::max(update, updated(d));
      if (!pieces_.update_last)
        f.bound = std::max(f.bound, start_bound + stream_bound(d, StreamKind::kVector) + d.optimizer);
      fill += d.forward / parts + message_, back += (d.backward - d.ahead) / parts + message_;
      start += d.forward / parts + message_, start_bound += d.fill_bound;
      back_bound += std::max(0.0, d.back_bound - only_saved(d));
      back_weights_ += d.weight_gradients / parts;
    }
    f.bound = std::max(f.bound, devices_.front().begin + whole_way(zero_bubble));
    f.bound = std::max(f.bound + least_update(), exchanged);
    f.time = end + pieces_.at_the_end + update;
    f.once = f.time - f.computing - f.exposed - f.bubble;
  }

  // Behind all passes: what comes amid them does so where a stream has nothing else to do.
  double least_update() const {
    double least = 0;
    for (const Device& d : devices_)
      if (pieces_.update_last) least = std::max(least, d.optimizer);
    return least;
  }

  // Until what a stage hands on has come through one stage of every device, in both directions: a device has
  // nothing else to do in its next stage if there are too few micro-batches to fill that.
  double round_trip() const {
    double round = 0;
    for (const Device& d : devices_) round += (d.forward + d.backward - d.ahead) / s_.chunks + 2 * message_;
    return round;
  }

  // A micro-batch goes through all stages, one after the other; gradients of weights may be put off.
  double whole_way(bool zero_bubble) const {
    double way = 0;
    for (const Device& d : devices_)
      way += d.forward_bound + (zero_bubble ? 0 : d.backward_bound - d.ahead_bound);
    for (const Device& d : devices_) way -= only_saved(d);
    // To the last stage nobody hands on.
    return way + (zero_bubble ? 0 : devices_.back().ahead_bound / s_.chunks);
  }

  // Of a single micro-batch, which is the first: others go the same way with nothing saved.
  double only_saved(const Device& d) const { return m_ == 1 ? saved(d) : 0; }

  // Gradients of a layer are exchanged while those of the layers before are computed.
  double exposed_exchange(const Device& d) const {
    const double hidden = std::max(0.0, d.backward - d.busy[at(StreamKind::kComm)] / 2);
    return d.exchange > 0 ? std::max(std::min(d.one_exchange, d.exchange), d.exchange - hidden) : 0;
  }

  static double updated(const Device& d) { return std::max(d.optimizer, d.redistribution); }

  // Micro-batches, in those of all a device's layers, that are kept at once.
  double under_way(std::size_t device) const {
    const auto p = static_cast<double>(devices_.size()), behind = p - 1 - static_cast<double>(device);
    const double m = m_;
    if (s_.schedule == PlanSchedule::kGpipe) return m;
    if (s_.chunks == 1) return std::min(m, behind + 1);
    const double stages = 2 * behind + (s_.chunks - 1) * p + 1;
    return std::min(m, stages / s_.chunks);
  }

  // What lives with what is kept of `under_way` micro-batches, when the forward pass of the last of them
  // ends: gradients only if a backward pass came before, the first weights only if another forward pass
  // follows. Of a last micro-batch weights go as gradients come, and those are exchanged as they do:
  // `exchanged` what they leave then.
  std::int64_t beside(const Device& d, double under_way, std::int64_t kept, std::int64_t exchanged) const {
    if (m_ >= under_way + 2) return d.state + kept;
    if (m_ >= under_way + 1) return d.state - d.first_copies + kept;
    return std::max(d.state - d.gradients - d.first_copies + kept, exchanged);
  }

  // Zero bubble puts off gradients of weights: of few micro-batches nothing may be summed up while the last
  // ones are kept.
  bool sums_before_the_last(std::size_t device, double under_way) const {
    return s_.schedule != PlanSchedule::kZeroBubble || m_ >= under_way + 2 + static_cast<double>(device);
  }

  void take_memory(Forecast& f) const {
    const double in_a_row = std::max(1.0, static_cast<double>(m_) / s_[PlanAxis::kPipeline]);
    f.sweeps = s_.chunks > 1 ? in_a_row : m_;
    f.least_sweeps = s_.schedule == PlanSchedule::kZeroBubble ? in_a_row : f.sweeps;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const Device& d = devices_[i];
      const double n = under_way(i);
      const auto kept = kept_by(n, d.kept);
      f.least_swept = std::max(f.least_swept, d.least_swept);
      const std::int64_t least =
          sums_before_the_last(i, n) ? beside(d, n, kept, 0) : d.state - d.gradients - d.first_copies + kept;
      f.least_memory = std::max(f.least_memory, least - d.largest_kept);
      f.least_here = std::max(f.least_here, kept_by(n, d.kept_here) - d.largest_kept);
      const std::int64_t passing = passes(d, i), put_off = added_by_put_off(d.kept, d.put_off, i, n);
      const std::int64_t here = kept_by(n, d.kept_here) + added_by_put_off(d.kept_here, d.put_off_here, i, n);
      f.here = std::max(f.here, here + passing);
      const std::int64_t all = beside(d, n, kept, d.state - d.copies) + passing + put_off;
      if (all <= f.memory) continue;
      f.memory = all;
      take_movable(f, d, {kept + put_off - here, 0}, n);
      f.ahead = ahead(i);
      f.stays = d.state - f.optimizer.bytes - f.weights.bytes - f.gradients.bytes + here + passing;
    }
  }

  // `kept`: of `under_way` micro-batches, and of what is put off; its tensors are as large as those of one.
  void take_movable(Forecast& f, const Device& d, Movable kept, double under_way) const {
    if (d.moving.bytes > 0) kept.tensors = d.moving.tensors * kept.bytes / d.moving.bytes;
    f.optimizer = d.once, f.masters = d.masters, f.weights = d.weights, f.gradients = d.summed;
    f.kept = kept, f.sweeps_of_kept = m_ / under_way;
    f.largest_movable = d.largest_movable;
  }

  // Share of a device's forward passes that are made before its first backward pass, or of one stage alone.
  double ahead(std::size_t device) const {
    if (s_.chunks == 1) return 1;
    return std::min(1.0, under_way(device) / m_);
  }

  static std::int64_t kept_by(double micro_batches, std::int64_t of_one) {
    return static_cast<std::int64_t>(static_cast<double>(of_one) * micro_batches);
  }

  // Most that lives for a moment. Where micro-batches do not fill the last round through a device's stages,
  // those of it are through the last stage sooner than their way back begins: what is kept behind the layers
  // is so meanwhile.
  std::int64_t passes(const Device& d, std::size_t device) const {
    if (s_.chunks == 1 || device + 1 < devices_.size()) return std::max(d.peak, d.end_peak);
    const std::int32_t round = s_[PlanAxis::kPipeline];
    const std::int64_t waiting = m_ > round ? m_ % round : m_ - 1;
    const std::int64_t others = m_ > round ? std::max<std::int64_t>(0, waiting - 1) : waiting;
    return std::max(d.peak + waiting * d.end_kept, d.end_peak + others * d.end_kept);
  }

  // ZB-H1 puts off the gradients of weights of as many micro-batches as there are stages before, and of one
  // more until those of the first of them begin; others are kept meanwhile.
  std::int64_t added_by_put_off(std::int64_t kept, std::int64_t put_off, std::size_t device,
                                double under_way) const {
    if (s_.schedule != PlanSchedule::kZeroBubble) return 0;
    const auto before = static_cast<std::int64_t>(device);
    const double all = std::min(static_cast<double>(m_), under_way + static_cast<double>(before));
    const auto with = [&](std::int64_t off) {
      return off * put_off + kept_by(std::max(0.0, all - static_cast<double>(off)), kept);
    };
    const std::int64_t most = std::max(with(before), with(before + 1));
    return std::max<std::int64_t>(0, most - kept_by(under_way, kept));
  }

  const Strategy& s_;
  const ModelSpec& model_;
  const Pieces& pieces_;  // of what lies before the layers and behind them
  LayersPieces layers_;   // of the device that is looked at
  DataTraffic data_;      // the same
  std::int32_t m_;
  double message_;
  bool least_;  // the pieces know nothing of the data axis
  bool any_;
  const Lying* lying_;
  double back_weights_ = 0;
  std::vector<Device> devices_;
};

}  // namespace

Forecast least_form(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                    const LayersPieces& pieces, const Lying* lying) {
  HR_CHECK(micro_batches > 0);
  return Form(strategy, model, micro_batches, pieces, 0, Of::kBound, lying).run();
}

double bound_of_more(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                     const LayersPieces& pieces, const Lying* lying) {
  HR_CHECK(micro_batches > 0);
  return Form(strategy, model, micro_batches, pieces, 0, Of::kBoundOfMore, lying).run().bound;
}

Forecast closed_form(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                     const LayersPieces& pieces, double message) {
  HR_CHECK(micro_batches > 0);
  return Form(strategy, model, micro_batches, pieces, message, Of::kStep, nullptr).run();
}

}  // namespace hyperrun

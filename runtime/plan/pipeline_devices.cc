#include "runtime/plan/pipeline_devices.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/plan/least_pieces.h"

namespace hyperrun {
namespace {

constexpr std::size_t kDistinct = 8;  // devices of a pipeline, as a rule

class Spreading {
 public:
  Spreading(const Strategy& s, const ModelSpec& model, const LayersPieces& pieces, Of of, const Lying* lying)
      : s_(s),
        model_(model),
        pieces_(*pieces.pieces),
        layers_(pieces),
        least_(of == Of::kBound || lying != nullptr),
        any_(of == Of::kBoundOfMore),
        zero_devices_(s.zero_devices()),
        spread_devices_(zero_devices_ / s[PlanAxis::kExpert]),
        stages_(s[PlanAxis::kPipeline] * s.chunks),
        share_((model.layers + s.lead + s.tail) / stages_),
        larger_((model.layers + s.lead + s.tail) % stages_),
        last_larger_(larger_ % s[PlanAxis::kPipeline]),
        lying_(lying) {
    HR_CHECK((s.deeper == 0 && of != Of::kBoundOfMore) || pieces.deeper != nullptr);
  }

  PipelineDevices layers() {
    devices_.reserve(static_cast<std::size_t>(s_[PlanAxis::kPipeline]), kDistinct);
    spread_layers();
    return std::move(devices_);
  }

  PipelineDevices with_ends(PipelineDevices layers) {
    devices_ = std::move(layers);
    add_ends();
    for (PipelineDevice& d : devices_.distinct())
      d.computing = d.busy[at(StreamKind::kCube)] + d.busy[at(StreamKind::kVector)];
    return std::move(devices_);
  }

  void split_state(PipelineDevices& devices) const {
    for (PipelineDevice& d : devices.distinct()) split(d);
    if (devices.size() > 1)
      add_state(devices.front(), pieces_.first_too), add_state(devices.back(), pieces_.last_too);
  }

 private:
  static constexpr std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

  int kind_of(int layer) const {
    return pieces_.kinds.size() > 1 && layer >= model_.experts.dense_layers ? 1 : 0;
  }

  // Of the device that is looked at.
  const LayerPieces& of_kind(int kind) const { return layers_.pieces->kinds[static_cast<std::size_t>(kind)]; }
  const LayerPieces& deeper_of_kind(int kind) const {
    return layers_.deeper->kinds[static_cast<std::size_t>(kind)];
  }

  // Layers [first, first + count) as a stage of the device: alike ones at once.
  void add_stage(PipelineDevice& d, int first, int count) {
    const int dense =
        pieces_.kinds.size() > 1 ? std::clamp(model_.experts.dense_layers - first, 0, count) : 0;
    if (dense > 0) add_kind(d, 0, dense);
    if (count > dense) add_kind(d, static_cast<int>(pieces_.kinds.size()) - 1, count - dense);
    if (count == 0) return;
    end_stages(d, kind_of(first + count - 1), 1);
    go_ahead(d, kind_of(first + count - 1), 1);
  }

  // As long as the device has some that recompute more, these.
  void add_kind(PipelineDevice& d, int kind, int count) {
    const int deeper = std::min(count, s_.deeper - d.deeper);
    if (deeper > 0) {
      come_between(d);
      add_layers(d, deeper_of_kind(kind), deeper);
      scatter({&deeper_of_kind(kind)}, deeper);
      d.deeper += deeper;
    }
    if (count == deeper) return;
    if (any_) return add_any(d, kind, count - deeper);
    add_layers(d, of_kind(kind), count - deeper);
    scatter({&of_kind(kind)}, count - deeper);
  }

  void add_any(PipelineDevice& d, int kind, int count) {
    const LayerPieces &usual = of_kind(kind), &more = deeper_of_kind(kind);
    come_between(d);
    add_layers(d, least_of(usual, more), count);
    scatter({&usual, &more}, count);
    d.one_forward = std::max({d.one_forward, usual.forward.bound, more.forward.bound});
    d.may_be_deeper = true;
  }

  static bool has_deeper(const PipelineDevice& d) { return d.deeper > 0 || d.may_be_deeper; }

  // Once on each device: those that recompute more are its first ones. A single layer is or is not one.
  void come_between(PipelineDevice& d) const {
    if (has_deeper(d) || count_ == 1) return;
    const Shorter shorter = between(layers_);
    d.forward_bound += shorter.forward, d.backward_bound += shorter.backward;
    d.split_bound += shorter.split;
  }

  void add_layers(PipelineDevice& d, const LayerPieces& layer, int count) const {
    const double times = count;
    add(d, layer, count);
    d.largest_kept = std::max(d.largest_kept, layer.kept);
    d.forward_bound += times * layer.forward.bound, d.backward_bound += times * layer.backward.bound;
    d.split += times * layer.split.time, d.split_bound += times * layer.split.bound;
    d.weights_bound += times * layer.split.weights, d.put_off_time += times * layer.split.put_off;
    d.exchanged += times * layer.split.exchanged;
    d.peak = std::max({d.peak, layer.forward_peak - layer.kept, layer.backward_peak - layer.kept});
    if (lying_ != nullptr) add_data_traffic(d, layer, times);
  }

  // ZeRO 2 adds gradients up behind each micro-batch, ZeRO 3 gathers weights for each pass as well, others
  // copies of them once, before all.
  void add_data_traffic(PipelineDevice& d, const LayerPieces& layer, double times) const {
    const auto part = [&](std::int64_t usual, std::int64_t wide, std::int64_t spread,
                          double Exchange::*each) {
      return times *
             (static_cast<double>(usual) * data_.usual.*each + static_cast<double>(wide) * data_.wide.*each +
              static_cast<double>(spread) * data_.spread.*each);
    };
    double& comm = d.least_busy[at(StreamKind::kComm)];
    const OwnGradients& own = layer.own_gradients;
    d.least_exchange += part(own.usual, own.wide, own.spread, &Exchange::reduce) +
                        times * static_cast<double>(own.narrow) * data_.reduce_narrow;
    comm += part(own.usual, own.wide, own.spread, &Exchange::reduce_in_pass);
    d.one_forward = std::max(d.one_forward, layer.forward.bound);
    d.all_exchange = d.all_exchange && layer.forward.least_busy[at(StreamKind::kComm)] > 0;
    if (s_.zero == 0) return;
    const bool copies = layer.state.copies > 0;
    const auto used = [&](const StateBytes& state) { return copies ? state.copies : state.weights; };
    const std::int64_t wide = used(layer.wide), spread = used(layer.spread);
    const double gathered =
        part(used(layer.state) - wide - spread - used(layer.narrow), wide, spread, &Exchange::gather);
    if (s_.zero == 3)
      comm += 2 * gathered;
    else if (copies)
      d.least_gather += gathered;
  }

  // Layers each of which is one of these. Zero bubble puts off gradients of weights, and with them this.
  void scatter(std::initializer_list<const LayerPieces*> any_of, double times) {
    if (!data_.scatters || s_.schedule == PlanSchedule::kZeroBubble) return;
    double least = std::numeric_limits<double>::infinity(), least_at_the_end = least;
    for (const LayerPieces* layer : any_of) {
      const Piece& pass = layer->backward;
      const double ending = std::min(pass.bound, pass.ending);
      double more = 0, at_the_end = 0;
      for (const ScatteredPass& p : layer->scattered) {
        more = std::max(more, p.bound.at(data_.usual.reduce) - pass.bound);
        at_the_end = std::max(at_the_end, p.ending.at(data_.usual.reduce) - ending);
      }
      least = std::min(least, more), least_at_the_end = std::min(least_at_the_end, at_the_end);
    }
    scattering_.add(times, least, least_at_the_end);
  }

  // Of all its passes. Nor may the last one wait that recomputes more, nor the last one of the first kind:
  // each is once on a device.
  void end_scattering(PipelineDevice& d, double passes) {
    const double ends = passes + (has_deeper(d) ? 1 : 0) + (pieces_.kinds.size() > 1 ? 1 : 0);
    d.scattering_bound = std::exchange(scattering_, {}).of(passes, ends);
  }

  // Ways back, of which each ends with whichever layer.
  void end_ways_back(PipelineDevice& d, double times) const {
    double backward = 0, split = 0, early = 0;
    const auto look_at = [&](const Pieces& pieces) {
      for (const LayerPieces& layer : pieces.kinds) {
        backward = std::min(backward, shorter_at_the_end(layer.backward));
        split = std::min(split, shorter_at_the_end(layer.split));
        early = std::min(early, handed_early(layer.backward));
      }
    };
    look_at(*layers_.pieces);
    if (has_deeper(d)) look_at(*layers_.deeper);
    d.backward_bound += times * backward, d.split_bound += times * split, d.early_bound += times * early;
  }

  // So many, whose last layer is of this kind.
  void end_stages(PipelineDevice& d, int kind, double times) const {
    const LayerPieces& last = of_kind(kind);
    const LayerPieces& other = has_deeper(d) ? deeper_of_kind(kind) : last;
    d.forward_bound += times * shorter_at_the_end(last.forward, other.forward);
    end_ways_back(d, times);
    d.split += times * shorter_at_the_end(last.split);  // what was put off hides it
    d.one_exchange = std::max(d.one_exchange, last.exchange);
  }

  // So many stages, whose last layer is of this kind: where others hand on to them, they need not wait to
  // recompute it.
  void go_ahead(PipelineDevice& d, int kind, double times) const {
    const Piece& last = of_kind(kind).backward;
    d.ahead += times * last.ahead;
    if (any_) {
      d.ahead_bound += times * least_of(of_kind(kind), deeper_of_kind(kind)).backward.ahead_bound;
      return;
    }
    const double deeper = d.deeper > 0 ? deeper_of_kind(kind).backward.ahead_bound : 0;
    d.ahead_bound += times * std::max(last.ahead_bound, deeper);
  }

  void add(PipelineDevice& d, const LayerPieces& layer, int count) const {
    const double times = count;
    d.forward += times * layer.forward.time, d.backward += times * layer.backward.time;
    d.weight_gradients += times * layer.weight_gradients;
    d.forward_comm += times * layer.forward.busy[at(StreamKind::kComm)];
    for (std::size_t s = 0; s < kStreams; ++s) {
      d.busy[s] += times * (layer.forward.busy[s] + layer.backward.busy[s]);
      d.least_busy[s] += times * (layer.forward.least_busy[s] + layer.backward.least_busy[s]);
      d.saved[s] += times * layer.saved[s];
    }
    d.exchange += times * layer.exchange, d.redistribution += times * layer.redistribution;
    d.whole_optimizer += times * layer.optimizer, d.spread_optimizer += times * layer.spread_optimizer;
    d.whole_begin += times * layer.begin, d.spread_begin += times * layer.spread_begin;
    d.begin_comm += times * layer.begin_comm;
    d.whole.add(layer.state, count), d.spread.add(layer.spread, count);
    d.kept += count * layer.kept, d.kept_here += count * layer.kept_here;
    d.gradients_here += count * layer.gradients_here, d.squared += count * layer.squared;
    d.updated_at_once = std::max(d.updated_at_once, layer.updated_at_once);
    d.here_peak = std::max(d.here_peak, layer.here_peak - layer.kept_here);
    d.at_once = std::max(d.at_once, layer.at_once);
    d.put_off += count * layer.put_off, d.put_off_here += count * layer.put_off_here;
    if (!least_) add_movable(d, layer, count);
  }

  // What ZeRO leaves the device of all it has.
  void split(PipelineDevice& d) const {
    d.optimizer = left(d.whole_optimizer, d.spread_optimizer, 1);
    d.begin = left(d.whole_begin, d.spread_begin, 1);
    d.state = least_ ? (d.whole - d.spread).at_least(s_.zero, zero_devices_) +
                           d.spread.at_least(s_.zero, spread_devices_)
                     : d.whole.all();
    d.gradients = d.whole.gradients, d.copies = d.whole.copies;
    d.least_swept = left(d.whole.used(), d.spread.used(), 3) + left(d.gradients, d.spread.gradients, 2);
  }

  // What ZeRO leaves a device at least of what the pieces have whole, where it splits that from `zero` on:
  // of what lies over the expert axis less than of the rest.
  template <class T>
  T left(T all, T spread, std::int32_t zero) const {
    if (!least_ || s_.zero < zero) return all;
    return part(all - spread, zero_devices_) + part(spread, spread_devices_);
  }
  static double part(double all, std::int32_t n) { return all / n; }
  static std::int64_t part(std::int64_t bytes, std::int32_t n) { return part_of(bytes, n); }

  // Where products take copies the optimizer's weights are of no use between the step's begin and its end.
  void add_movable(PipelineDevice& d, const LayerPieces& layer, int count) const {
    const auto plus = [&](Movable& m, std::int64_t StateBytes::*part) {
      m.bytes += count * layer.state.*part, m.tensors += count * layer.tensors.*part;
    };
    const bool copies = layer.state.copies > 0;
    if (copies) plus(d.masters, &StateBytes::weights), plus(d.once, &StateBytes::weights);
    plus(d.once, &StateBytes::moments);
    plus(d.weights, copies ? &StateBytes::copies : &StateBytes::weights);
    plus(d.summed, &StateBytes::gradients);
    d.moving.bytes += count * (layer.kept - layer.kept_here), d.moving.tensors += count * layer.kept_tensors;
    d.moving.empty += count * layer.kept_empty;
    d.largest_movable = std::max(d.largest_movable, layer.largest_movable);
  }

  int layers_before(int stage) const {
    return share_ * stage + std::min(stage, larger_) - (stage > 0 ? s_.lead : 0);
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
    return device > 1 && lies_apart(device) == lies_apart(device - 1) &&
           device < s_[PlanAxis::kPipeline] - 1 && device != last_larger_ &&
           (pieces_.kinds.size() == 1 || layers_before(device - 1) >= model_.experts.dense_layers);
  }

  void spread_layers() {
    const int stages = s_[PlanAxis::kPipeline];
    const LayersPieces usual = layers_;
    for (int d = 0; d < stages; ++d) {
      if (like_the_one_before(d)) {
        devices_.repeat();
        continue;
      }
      look_at(d, usual);
      count_ = layers_of_device(s_, model_.layers, d);
      PipelineDevice& device = devices_.add();
      if (pieces_.kinds.size() == 1) {
        const int of_last =
            s_.chunks > 1 ? layers_of_stage(s_, model_.layers, d + stages * (s_.chunks - 1)) : 0;
        add_kind(device, 0, count_ - of_last);
        begin_last_stage(device);
        add_kind(device, 0, of_last);
        end_stages(device, 0, s_.chunks);
        go_ahead(device, 0, s_.chunks);
      } else {
        for (int v = d; v < stages * s_.chunks; v += stages) {
          begin_last_stage(device);
          add_stage(device, layers_before(v), layers_of_stage(s_, model_.layers, v));
        }
      }
      end_last_stage(device);
      end_scattering(device, s_.chunks);
      bound_first_stage(device, d);
    }
  }

  static void begin_last_stage(PipelineDevice& d) { d.last_stage = {d.kept, d.kept_here}; }
  static void end_last_stage(PipelineDevice& d) {
    d.last_stage = {d.kept - d.last_stage.kept, d.kept_here - d.last_stage.here};
  }

  // What a device's first pass hands on after, and its last one ends with.
  void bound_first_stage(PipelineDevice& d, int device) {
    d.fill_bound = d.forward_bound, d.back_bound = d.backward_bound - d.ahead_bound + d.early_bound;
    if (s_.chunks == 1) return;
    PipelineDevice stage;
    count_ = layers_of_stage(s_, model_.layers, device);
    add_stage(stage, layers_before(device), count_);
    d.first_stage = {stage.kept, stage.kept_here};
    d.fill_bound = stage.forward_bound;
    d.back_bound = stage.backward_bound - stage.ahead_bound + stage.early_bound;
    scattering_ = {};
  }

  void add_ends() {
    const LayerPieces &before = pieces_.first, &behind = pieces_.last;
    PipelineDevice &first = devices_.front(), &last = devices_.back();
    add(first, before, 1);
    first.first_stage.kept += before.kept, first.first_stage.here += before.kept_here;
    first.first_copies = before.state.copies;
    first.peak = std::max({first.peak, before.forward_peak, before.backward_peak - before.kept});
    add(last, behind, 1);
    last.end_gradients = behind.state.gradients;
    if (s_.schedule != PlanSchedule::kGpipe) {  // the way back begins at once
      last.kept -= behind.kept, last.kept_here -= behind.kept_here, last.end_kept = behind.kept;
      last.here_peak = std::max(last.here_peak, behind.here_peak);
    }
    last.forward_bound += head_bound(behind);
    last.weights_bound += behind.split.weights, last.put_off_time += behind.split.put_off;
    last.exchanged += behind.split.exchanged;
    last.split += behind.split.time - behind.forward.bound;  // which its forward passes have
    last.end_peak = std::max(behind.forward_peak, behind.backward_peak) - (behind.kept - last.end_kept);
  }

  // Where all forward passes come first, products of the next one come between those of the head.
  double head_bound(const LayerPieces& head) const {
    if (s_.schedule == PlanSchedule::kZeroBubble) return head.split.bound;
    if (s_.schedule != PlanSchedule::kGpipe) return head.forward.bound;
    return std::min(head.forward.bound, head.forward.least_busy[at(StreamKind::kCube)]);
  }

  void add_state(PipelineDevice& d, const StateBytes& state) const {
    d.state += least_ ? state.at_least(s_.zero, zero_devices_) : state.all();
    d.gradients += state.gradients, d.copies += state.copies;
  }

  const Strategy& s_;
  const ModelSpec& model_;
  const Pieces& pieces_;         // of what lies before the layers and behind them
  LayersPieces layers_;          // of the device that is looked at
  int count_ = 0;                // of layers, of that device or stage
  DataTraffic data_;             // of the device
  LayersScattering scattering_;  // the same
  bool least_;                   // the pieces know nothing of the data axis
  bool any_;
  std::int32_t zero_devices_, spread_devices_;  // that ZeRO splits over: what lies over experts, fewer
  // Of layers, with those that the ends have fewer, all stages have some, and the first ones one more: up to
  // that of this device.
  int stages_, share_, larger_, last_larger_;
  const Lying* lying_;
  PipelineDevices devices_;
};

}  // namespace

void LayersScattering::add(double layers, double each, double at_the_end) {
  const auto end = alike_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto same = std::find_if(alike_.begin(), end, [&](const Alike& a) { return a.each == each; });
  if (same != end) {
    same->layers += layers;
  } else {
    HR_CHECK(count_ < alike_.size());
    alike_[count_++] = {layers, each};
  }
  at_the_end_ = std::min(at_the_end_, at_the_end);
}

double LayersScattering::of(double passes, double ends) const {
  if (count_ == 0) return 0;
  std::array<Alike, 4> alike = alike_;
  std::ranges::sort(alike, std::ranges::greater(), &Alike::each);
  double all = passes * at_the_end_;
  for (const Alike& a : alike) {
    const double left_out = std::min(a.layers, ends);
    ends -= left_out, all += (a.layers - left_out) * a.each;
  }
  return all;
}

PipelineDevices devices_of(const Strategy& strategy, const ModelSpec& model, const LayersPieces& pieces,
                           Of of, const Lying* lying) {
  Spreading spreading(strategy, model, pieces, of, lying);
  PipelineDevices devices = spreading.with_ends(spreading.layers());
  spreading.split_state(devices);
  return devices;
}

PipelineDevices layers_on_devices(const Strategy& strategy, const ModelSpec& model,
                                  const LayersPieces& pieces) {
  return Spreading(strategy, model, pieces, Of::kBound, nullptr).layers();
}

PipelineDevices with_ends(PipelineDevices layers, const Strategy& strategy, const ModelSpec& model,
                          const LayersPieces& pieces) {
  return Spreading(strategy, model, pieces, Of::kBound, nullptr).with_ends(std::move(layers));
}

void split_state(PipelineDevices& devices, const Strategy& strategy, const ModelSpec& model,
                 const LayersPieces& pieces) {
  Spreading(strategy, model, pieces, Of::kBound, nullptr).split_state(devices);
}

}  // namespace hyperrun

#include "runtime/plan/pipeline_devices.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/plan/lower_bound_profile.h"

namespace hyperrun {
namespace {

constexpr std::size_t kDistinct = 8;  // distinct devices of a pipeline, usually

class DeviceBuilder {
 public:
  DeviceBuilder(const Strategy& s, const ModelSpec& model, const StepProfiles& profiles, Estimate estimate,
                const AxisPlacement* placement)
      : s_(s),
        model_(model),
        profile_(*profiles.base),
        layers_(profiles),
        least_(estimate == Estimate::kLowerBound || placement != nullptr),
        any_(estimate == Estimate::kLowerBoundWithExtra),
        zero_devices_(s.zero_devices()),
        expert_zero_devices_(zero_devices_ / s[PlanAxis::kExpert]),
        stages_(s[PlanAxis::kPipeline] * s.chunks),
        share_((model.layers + s.first_stage_shortfall + s.last_stage_shortfall) / stages_),
        larger_((model.layers + s.first_stage_shortfall + s.last_stage_shortfall) % stages_),
        last_larger_(larger_ % s[PlanAxis::kPipeline]),
        placement_(placement) {
    HR_CHECK((s.extra_recompute_layers == 0 && estimate != Estimate::kLowerBoundWithExtra) ||
             profiles.extra != nullptr);
  }

  PipelineDevices layers() {
    devices_.reserve(static_cast<std::size_t>(s_[PlanAxis::kPipeline]), kDistinct);
    place_layers();
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
      add_state(devices.front(), profile_.first_too), add_state(devices.back(), profile_.last_too);
  }

 private:
  static constexpr std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

  int kind_of(int layer) const {
    return profile_.kinds.size() > 1 && layer >= model_.experts.dense_layers ? 1 : 0;
  }

  // Profiles of the current device.
  const LayerProfile& of_kind(int kind) const { return layers_.base->kinds[static_cast<std::size_t>(kind)]; }
  const LayerProfile& extra_of_kind(int kind) const {
    return layers_.extra->kinds[static_cast<std::size_t>(kind)];
  }

  // Adds layers [first, first + count) as one chunk.
  void add_chunk(PipelineDevice& d, int first, int count) {
    const int dense =
        profile_.kinds.size() > 1 ? std::clamp(model_.experts.dense_layers - first, 0, count) : 0;
    if (dense > 0) add_kind(d, 0, dense);
    if (count > dense) add_kind(d, static_cast<int>(profile_.kinds.size()) - 1, count - dense);
    if (count == 0) return;
    end_chunks(d, kind_of(first + count - 1), 1);
    add_prologue(d, kind_of(first + count - 1), 1);
  }

  // Adds layers of one kind. The first layers of a device recompute more.
  void add_kind(PipelineDevice& d, int kind, int count) {
    const int extra_recompute_layers = std::min(count, s_.extra_recompute_layers - d.extra_recompute_layers);
    if (extra_recompute_layers > 0) {
      subtract_boundary_savings(d);
      add_layers(d, extra_of_kind(kind), extra_recompute_layers);
      scatter({&extra_of_kind(kind)}, extra_recompute_layers);
      d.extra_recompute_layers += extra_recompute_layers;
    }
    if (count == extra_recompute_layers) return;
    if (any_) return add_any(d, kind, count - extra_recompute_layers);
    add_layers(d, of_kind(kind), count - extra_recompute_layers);
    scatter({&of_kind(kind)}, count - extra_recompute_layers);
  }

  void add_any(PipelineDevice& d, int kind, int count) {
    const LayerProfile &usual = of_kind(kind), &more = extra_of_kind(kind);
    subtract_boundary_savings(d);
    add_layers(d, elementwise_min(usual, more), count);
    scatter({&usual, &more}, count);
    d.one_forward = std::max({d.one_forward, usual.forward.bound, more.forward.bound});
    d.may_have_extra = true;
  }

  static bool has_extra(const PipelineDevice& d) { return d.extra_recompute_layers > 0 || d.may_have_extra; }

  // Subtracts the savings where extra recomputing layers meet the others, once a device. A single layer has
  // no neighbour.
  void subtract_boundary_savings(PipelineDevice& d) const {
    if (has_extra(d) || count_ == 1) return;
    const EndSavings shorter = boundary_savings(layers_);
    d.forward_bound += shorter.forward, d.backward_bound += shorter.backward;
    d.split_bound += shorter.split;
  }

  void add_layers(PipelineDevice& d, const LayerProfile& layer, int count) const {
    const double times = count;
    add(d, layer, count);
    d.largest_kept = std::max(d.largest_kept, layer.kept);
    d.forward_bound += times * layer.forward.bound, d.backward_bound += times * layer.backward.bound;
    d.split += times * layer.split.time, d.split_bound += times * layer.split.bound;
    d.weights_bound += times * layer.split.weights, d.deferred_time += times * layer.split.deferred;
    d.exchanged += times * layer.split.exchanged;
    d.peak = std::max({d.peak, layer.forward_peak - layer.kept, layer.backward_peak - layer.kept});
    if (placement_ != nullptr) add_data_traffic(d, layer, times);
  }

  // Traffic along the data axes: ZeRO 2 reduces gradients after each micro-batch, ZeRO 3 also gathers weights
  // for each pass; otherwise copies of weights are gathered once.
  void add_data_traffic(PipelineDevice& d, const LayerProfile& layer, double times) const {
    const auto part = [&](std::int64_t usual, std::int64_t wide, std::int64_t expert,
                          double Exchange::*each) {
      return times * (static_cast<double>(usual) * traffic_.usual.*each +
                      static_cast<double>(wide) * traffic_.wide.*each +
                      static_cast<double>(expert) * traffic_.expert.*each);
    };
    double& comm = d.busy_bound[at(StreamKind::kComm)];
    const GradientBytes& own = layer.own_gradients;
    d.least_exchange += part(own.usual, own.wide, own.expert, &Exchange::reduce) +
                        times * static_cast<double>(own.narrow) * traffic_.reduce_narrow;
    comm += part(own.usual, own.wide, own.expert, &Exchange::reduce_in_pass);
    d.one_forward = std::max(d.one_forward, layer.forward.bound);
    d.all_exchange = d.all_exchange && layer.forward.busy_bound[at(StreamKind::kComm)] > 0;
    if (s_.zero == 0) return;
    const bool copies = layer.state.copies > 0;
    const auto used = [&](const StateBytes& state) { return copies ? state.copies : state.weights; };
    const std::int64_t wide = used(layer.wide), expert = used(layer.expert);
    const double gathered =
        part(used(layer.state) - wide - expert - used(layer.narrow), wide, expert, &Exchange::gather);
    if (s_.zero == 3)
      comm += 2 * gathered;
    else if (copies)
      d.least_gather += gathered;
  }

  // Adds the scatter of layers, each of which is one of `any_of`. Zero bubble defers it with the weight
  // gradients.
  void scatter(std::initializer_list<const LayerProfile*> any_of, double times) {
    if (!traffic_.scatters || s_.schedule == PlanSchedule::kZeroBubble) return;
    double least = std::numeric_limits<double>::infinity(), least_at_the_end = least;
    for (const LayerProfile* layer : any_of) {
      const PassProfile& pass = layer->backward;
      const double end_bound = std::min(pass.bound, pass.end_bound);
      double more = 0, at_the_end = 0;
      for (const ScatterPass& p : layer->scattered) {
        more = std::max(more, p.bound.at(traffic_.usual.reduce) - pass.bound);
        at_the_end = std::max(at_the_end, p.end_bound.at(traffic_.usual.reduce) - end_bound);
      }
      least = std::min(least, more), least_at_the_end = std::min(least_at_the_end, at_the_end);
    }
    scattering_.add(times, least, least_at_the_end);
  }

  // Ends the scatter bound of all passes. The last extra recomputing layer and the last layer of the first
  // kind may not wait either, once a device.
  void end_scattering(PipelineDevice& d, double passes) {
    const double ends = passes + (has_extra(d) ? 1 : 0) + (profile_.kinds.size() > 1 ? 1 : 0);
    d.scattering_bound = std::exchange(scattering_, {}).of(passes, ends);
  }

  // Savings at the end of backward passes, whichever layer is the last.
  void end_backward_passes(PipelineDevice& d, double times) const {
    double backward = 0, split = 0, early = 0;
    const auto look_at = [&](const StepProfile& profile) {
      for (const LayerProfile& layer : profile.kinds) {
        backward = std::min(backward, end_saving(layer.backward));
        split = std::min(split, end_saving(layer.split));
        early = std::min(early, handoff_saving(layer.backward));
      }
    };
    look_at(*layers_.base);
    if (has_extra(d)) look_at(*layers_.extra);
    d.backward_bound += times * backward, d.split_bound += times * split, d.handoff_saving += times * early;
  }

  // Savings of `times` chunks whose last layer is of this kind.
  void end_chunks(PipelineDevice& d, int kind, double times) const {
    const LayerProfile& last = of_kind(kind);
    const LayerProfile& other = has_extra(d) ? extra_of_kind(kind) : last;
    d.forward_bound += times * end_saving(last.forward, other.forward);
    end_backward_passes(d, times);
    d.split += times * end_saving(last.split);  // deferred weight gradients hide it
    d.one_exchange = std::max(d.one_exchange, last.exchange);
  }

  // Adds the prologue of `times` chunks whose last layer is of this kind.
  void add_prologue(PipelineDevice& d, int kind, double times) const {
    const PassProfile& last = of_kind(kind).backward;
    d.prologue += times * last.prologue;
    if (any_) {
      d.prologue_bound += times * elementwise_min(of_kind(kind), extra_of_kind(kind)).backward.prologue_bound;
      return;
    }
    const double extra_recompute_layers =
        d.extra_recompute_layers > 0 ? extra_of_kind(kind).backward.prologue_bound : 0;
    d.prologue_bound += times * std::max(last.prologue_bound, extra_recompute_layers);
  }

  void add(PipelineDevice& d, const LayerProfile& layer, int count) const {
    const double times = count;
    d.forward += times * layer.forward.time, d.backward += times * layer.backward.time;
    d.weight_gradients += times * layer.weight_gradients;
    d.forward_comm += times * layer.forward.busy[at(StreamKind::kComm)];
    for (std::size_t s = 0; s < kStreams; ++s) {
      d.busy[s] += times * (layer.forward.busy[s] + layer.backward.busy[s]);
      d.busy_bound[s] += times * (layer.forward.busy_bound[s] + layer.backward.busy_bound[s]);
      d.saved[s] += times * layer.saved[s];
    }
    d.exchange += times * layer.exchange, d.redistribution += times * layer.redistribution;
    d.whole_optimizer += times * layer.optimizer, d.expert_optimizer += times * layer.expert_optimizer;
    d.whole_begin += times * layer.begin, d.expert_begin += times * layer.expert_begin;
    d.begin_comm += times * layer.begin_comm;
    d.whole.add(layer.state, count), d.expert.add(layer.expert, count);
    d.kept += count * layer.kept, d.kept_fixed += count * layer.kept_fixed;
    d.gradients_fixed += count * layer.gradients_fixed, d.squared += count * layer.squared;
    d.largest_update = std::max(d.largest_update, layer.largest_update);
    d.fixed_peak = std::max(d.fixed_peak, layer.fixed_peak - layer.kept_fixed);
    d.largest_instr = std::max(d.largest_instr, layer.largest_instr);
    d.deferred += count * layer.deferred, d.deferred_fixed += count * layer.deferred_fixed;
    if (!least_) add_movable(d, layer, count);
  }

  // Applies ZeRO to the state of a device.
  void split(PipelineDevice& d) const {
    d.optimizer = left(d.whole_optimizer, d.expert_optimizer, 1);
    d.begin = left(d.whole_begin, d.expert_begin, 1);
    d.state = least_ ? (d.whole - d.expert).at_least(s_.zero, zero_devices_) +
                           d.expert.at_least(s_.zero, expert_zero_devices_)
                     : d.whole.all();
    d.gradients = d.whole.gradients, d.copies = d.whole.copies;
    d.least_swept = left(d.whole.used(), d.expert.used(), 3) + left(d.gradients, d.expert.gradients, 2);
  }

  // Lower bound of what ZeRO leaves of a quantity, if it splits it from stage `zero` on. State split over
  // experts has fewer devices to split over.
  template <class T>
  T left(T all, T expert, std::int32_t zero) const {
    if (!least_ || s_.zero < zero) return all;
    return part(all - expert, zero_devices_) + part(expert, expert_zero_devices_);
  }
  static double part(double all, std::int32_t n) { return all / n; }
  static std::int64_t part(std::int64_t bytes, std::int32_t n) { return part_of(bytes, n); }

  // If products read copies, the optimizer's weights are unused between begin and end of a step.
  void add_movable(PipelineDevice& d, const LayerProfile& layer, int count) const {
    const auto plus = [&](Movable& m, std::int64_t StateBytes::*part) {
      m.bytes += count * layer.state.*part, m.tensors += count * layer.tensors.*part;
    };
    const bool copies = layer.state.copies > 0;
    if (copies) plus(d.masters, &StateBytes::weights), plus(d.once, &StateBytes::weights);
    plus(d.once, &StateBytes::moments);
    plus(d.weights, copies ? &StateBytes::copies : &StateBytes::weights);
    plus(d.summed, &StateBytes::gradients);
    d.moving.bytes += count * (layer.kept - layer.kept_fixed), d.moving.tensors += count * layer.kept_tensors;
    d.moving.empty += count * layer.kept_empty;
    d.largest_movable = std::max(d.largest_movable, layer.largest_movable);
  }

  int layers_before(int stage) const {
    return share_ * stage + std::min(stage, larger_) - (stage > 0 ? s_.first_stage_shortfall : 0);
  }

  bool straddles(int device) const {
    return placement_ != nullptr && !placement_->straddles.empty() &&
           placement_->straddles[static_cast<std::size_t>(device)];
  }

  void select_profiles(int device, const StepProfiles& usual) {
    if (placement_ == nullptr) return;
    const bool straddling = straddles(device);
    layers_ = straddling ? placement_->straddling_profiles : usual;
    traffic_ = straddling ? placement_->straddling_traffic : placement_->traffic;
  }

  // True in the middle of a pipeline with layers of one kind.
  bool equals_previous(int device) const {
    return device > 1 && straddles(device) == straddles(device - 1) && device < s_[PlanAxis::kPipeline] - 1 &&
           device != last_larger_ &&
           (profile_.kinds.size() == 1 || layers_before(device - 1) >= model_.experts.dense_layers);
  }

  void place_layers() {
    const int stages = s_[PlanAxis::kPipeline];
    const StepProfiles usual = layers_;
    for (int d = 0; d < stages; ++d) {
      if (equals_previous(d)) {
        devices_.repeat();
        continue;
      }
      select_profiles(d, usual);
      count_ = layers_of_device(s_, model_.layers, d);
      PipelineDevice& device = devices_.add();
      if (profile_.kinds.size() == 1) {
        const int of_last =
            s_.chunks > 1 ? layers_of_stage(s_, model_.layers, d + stages * (s_.chunks - 1)) : 0;
        add_kind(device, 0, count_ - of_last);
        begin_last_chunk(device);
        add_kind(device, 0, of_last);
        end_chunks(device, 0, s_.chunks);
        add_prologue(device, 0, s_.chunks);
      } else {
        for (int v = d; v < stages * s_.chunks; v += stages) {
          begin_last_chunk(device);
          add_chunk(device, layers_before(v), layers_of_stage(s_, model_.layers, v));
        }
      }
      end_last_chunk(device);
      end_scattering(device, s_.chunks);
      bound_first_chunk(device, d);
    }
  }

  static void begin_last_chunk(PipelineDevice& d) { d.last_chunk = {d.kept, d.kept_fixed}; }
  static void end_last_chunk(PipelineDevice& d) {
    d.last_chunk = {d.kept - d.last_chunk.kept, d.kept_fixed - d.last_chunk.fixed};
  }

  // Lower bounds of the first chunk: until it hands on, and the end of its last backward pass.
  void bound_first_chunk(PipelineDevice& d, int device) {
    d.fill_bound = d.forward_bound, d.back_bound = d.backward_bound - d.prologue_bound + d.handoff_saving;
    if (s_.chunks == 1) return;
    PipelineDevice stage;
    count_ = layers_of_stage(s_, model_.layers, device);
    add_chunk(stage, layers_before(device), count_);
    d.first_chunk = {stage.kept, stage.kept_fixed};
    d.fill_bound = stage.forward_bound;
    d.back_bound = stage.backward_bound - stage.prologue_bound + stage.handoff_saving;
    scattering_ = {};
  }

  void add_ends() {
    const LayerProfile &before = profile_.first, &behind = profile_.last;
    PipelineDevice &first = devices_.front(), &last = devices_.back();
    add(first, before, 1);
    first.first_chunk.kept += before.kept, first.first_chunk.fixed += before.kept_fixed;
    first.first_copies = before.state.copies;
    first.peak = std::max({first.peak, before.forward_peak, before.backward_peak - before.kept});
    add(last, behind, 1);
    last.end_gradients = behind.state.gradients;
    if (s_.schedule != PlanSchedule::kGpipe) {  // the backward pass begins at once
      last.kept -= behind.kept, last.kept_fixed -= behind.kept_fixed, last.end_kept = behind.kept;
      last.fixed_peak = std::max(last.fixed_peak, behind.fixed_peak);
    }
    last.forward_bound += head_bound(behind);
    last.weights_bound += behind.split.weights, last.deferred_time += behind.split.deferred;
    last.exchanged += behind.split.exchanged;
    last.split += behind.split.time - behind.forward.bound;  // forward passes have this part already
    last.end_peak = std::max(behind.forward_peak, behind.backward_peak) - (behind.kept - last.end_kept);
  }

  // In gpipe all forward passes come first, so the head overlaps with products of the next pass.
  double head_bound(const LayerProfile& head) const {
    if (s_.schedule == PlanSchedule::kZeroBubble) return head.split.bound;
    if (s_.schedule != PlanSchedule::kGpipe) return head.forward.bound;
    return std::min(head.forward.bound, head.forward.busy_bound[at(StreamKind::kCube)]);
  }

  void add_state(PipelineDevice& d, const StateBytes& state) const {
    d.state += least_ ? state.at_least(s_.zero, zero_devices_) : state.all();
    d.gradients += state.gradients, d.copies += state.copies;
  }

  const Strategy& s_;
  const ModelSpec& model_;
  const StepProfile& profile_;     // embedding and head
  StepProfiles layers_;            // of the current device
  int count_ = 0;                  // layers of the current device or chunk
  DataTraffic traffic_;            // of the current device
  LayersScatterBound scattering_;  // of the current device
  bool least_;                     // true if profiles are without data axis
  bool any_;
  std::int32_t zero_devices_, expert_zero_devices_;  // devices that ZeRO splits over; fewer for experts
  // Layers with both shortfalls are dealt out evenly: share_ to each stage, one more to the first larger_
  // stages, the last of which is on device last_larger_.
  int stages_, share_, larger_, last_larger_;
  const AxisPlacement* placement_;
  PipelineDevices devices_;
};

}  // namespace

void LayersScatterBound::add(double layers, double each, double at_the_end) {
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

double LayersScatterBound::of(double passes, double ends) const {
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

PipelineDevices devices_of(const Strategy& strategy, const ModelSpec& model, const StepProfiles& profiles,
                           Estimate estimate, const AxisPlacement* placement) {
  DeviceBuilder builder(strategy, model, profiles, estimate, placement);
  PipelineDevices devices = builder.with_ends(builder.layers());
  builder.split_state(devices);
  return devices;
}

PipelineDevices layers_on_devices(const Strategy& strategy, const ModelSpec& model,
                                  const StepProfiles& profiles) {
  return DeviceBuilder(strategy, model, profiles, Estimate::kLowerBound, nullptr).layers();
}

PipelineDevices with_ends(PipelineDevices layers, const Strategy& strategy, const ModelSpec& model,
                          const StepProfiles& profiles) {
  return DeviceBuilder(strategy, model, profiles, Estimate::kLowerBound, nullptr)
      .with_ends(std::move(layers));
}

void split_state(PipelineDevices& devices, const Strategy& strategy, const ModelSpec& model,
                 const StepProfiles& profiles) {
  DeviceBuilder(strategy, model, profiles, Estimate::kLowerBound, nullptr).split_state(devices);
}

}  // namespace hyperrun

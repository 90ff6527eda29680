#include "runtime/plan/closed_form.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/plan/pipeline_devices.h"

namespace hyperrun {
namespace {

// Costs of one device, ns.
struct DeviceCosts {
  double pass = 0, passes = 0;  // one micro-batch; all micro-batches
  double exposed = 0;           // gradient exchange that nothing hides
  double least_passes = 0;      // lower bound of all passes, by the busiest stream
  double in_a_row = 0;          // lower bound of all passes one after another
  // Lower bounds by stream.
  double vector = 0, comm = 0;
  double single_pass_saving = 0;
  // Bounds up to the gradient exchange: end of the weight gather before the first pass, all forward passes,
  // and the backward passes that must have ended.
  double gathered = 0, forwards = 0, backwards = 0;
};

class StepFormula {
 public:
  // `devices` must outlive this.
  StepFormula(const Strategy& s, std::int32_t micro_batches, const StepProfile& profile, double message,
              const PipelineDevices& devices)
      : s_(s), profile_(profile), m_(micro_batches), message_(message), devices_(devices) {
    costs_.reserve(devices_.distinct().size());
    for (const PipelineDevice& d : devices_.distinct()) costs_.push_back(costs_of(d));
  }

  Forecast run() {
    Forecast f;
    compute_time(f);
    compute_memory(f);
    return f;
  }

 private:
  static constexpr std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

  DeviceCosts costs_of(const PipelineDevice& d) const {
    DeviceCosts c;
    c.pass = pass(d), c.passes = m_ * c.pass;
    c.exposed = exposed_exchange(d);
    c.in_a_row = passes_in_a_row(d), c.least_passes = passes_bound(d, c.in_a_row);
    c.vector = stream_bound(d, StreamKind::kVector), c.comm = stream_bound(d, StreamKind::kComm);
    c.single_pass_saving = single_pass_saving(d);
    bound_until_exchange(d, c);
    return c;
  }

  // Lower bound of both passes of all micro-batches, by the busiest stream. The communication stream is left
  // out if ZeRO exchanges state: its gather can precede the first pass and its last scatter follow the last
  // one. Collectives then bound the step separately.
  double passes_bound(const PipelineDevice& d, double in_a_row) const {
    double busiest = in_a_row;
    for (std::size_t s = 0; s < kStreams; ++s)
      if (s != at(StreamKind::kComm) || !exchanges_state())
        busiest = std::max(busiest, stream_bound(d, static_cast<StreamKind>(s)));
    return busiest;
  }
  // Products of deferred weight gradients run between the others.
  double passes_in_a_row(const PipelineDevice& d) const {
    const double weights = is_split() ? d.weights_bound : 0;
    return m_ * (d.forward_bound + backward_bound(d) + weights) - saved(d);
  }
  double backward_bound(const PipelineDevice& d) const {
    return std::max(0.0, is_split() ? d.split_bound : d.backward_bound + d.scattering_bound);
  }
  bool is_split() const { return s_.schedule == PlanSchedule::kZeroBubble; }
  double stream_bound(const PipelineDevice& d, StreamKind s) const {
    return m_ * d.busy_bound[at(s)] - d.saved[at(s)];
  }
  // Upper bound of what the first micro-batch saves on all streams together.
  static double saved(const PipelineDevice& d) {
    return std::accumulate(d.saved.begin(), d.saved.end(), 0.0);
  }
  bool exchanges_state() const { return s_.zero >= 2; }

  // Work before gradients of the last micro-batch can be exchanged: all forward passes, and all backward
  // passes except its own. With several chunks the last round of all but the last chunk is not needed either.
  // The gather of weight copies precedes other communication. It overlaps with one layer if every layer
  // communicates, otherwise with one round of forward passes.
  void bound_until_exchange(const PipelineDevice& d, DeviceCosts& c) const {
    const double parts = s_.chunks;
    const std::int32_t round = passes_per_round();
    const double backward = (m_ - round + (round - 1) / parts) * backward_bound(d);
    const double lookahead = d.all_exchange ? d.one_forward : round * d.forward_bound;
    c.gathered = d.least_gather - lookahead;
    c.forwards = m_ * d.forward_bound, c.backwards = std::max(0.0, backward - saved(d));
  }

  // Micro-batches that pass one chunk of a device before any passes the next chunk.
  std::int32_t passes_per_round() const { return s_.chunks > 1 ? std::min(m_, s_[PlanAxis::kPipeline]) : 1; }

  double pass(const PipelineDevice& d) const {
    const double backward = is_split() ? d.split + deferred(d) : d.backward;
    return std::max(d.forward + backward, *std::ranges::max_element(d.busy));
  }

  // Time of deferred weight gradients. They hide their own reduce-scatter. The rest of it delays the next
  // pass if that pass communicates.
  static double deferred(const PipelineDevice& d) {
    return d.forward_comm > 0 ? d.exchanged : d.deferred_time;
  }

  void compute_time(Forecast& f) {
    const double parts = s_.chunks;
    double fill = 0, back = 0, back_bound = 0, end = 0;
    // Start of a device's first pass: after its own begin, and after the first pass of the device before.
    double start = 0, start_bound = 0;
    double update = 0, exchanged = 0, back_weights = 0;
    const bool zero_bubble = s_.schedule == PlanSchedule::kZeroBubble;
    const double round = round_trip();
    // Micro-batches in the last round through the chunks of a device.
    const std::int32_t rest = m_ % s_[PlanAxis::kPipeline], last_round = rest > 0 ? rest : m_;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const PipelineDevice& d = devices_[i];
      const DeviceCosts& c = costs_[devices_.which()[i]];
      start = std::max({start, d.begin, d.begin_comm}), start_bound = std::max(start_bound, d.begin);
      double way = fill + back + (parts - 1) * std::max(0.0, round - last_round * c.pass / parts);
      if (zero_bubble) way = std::max(0.0, way - 2 * back_weights);
      const double own = start - fill + way + c.passes + c.exposed;
      if (own > end) {
        end = own;
        f.bubble = way;
        f.computing = m_ * d.computing;
        f.exposed = std::max(0.0, c.passes - f.computing);
        f.forward = c.passes * d.forward / (d.forward + d.backward);
        f.backward = c.passes - f.forward;
      }
      const double back_or_gap = zero_bubble ? 0 : back_bound;
      f.bound = std::max(f.bound, start_bound + c.least_passes + back_or_gap);
      f.bound = std::max(f.bound, c.gathered + c.in_a_row + back_or_gap);
      if (exchanges_state()) f.bound = std::max(f.bound, c.comm);
      exchanged = std::max(exchanged,
                           std::max(start_bound, c.gathered) + c.forwards + c.backwards + d.least_exchange);
      update = std::max({update, d.optimizer, d.redistribution});
      if (!profile_.update_last) f.bound = std::max(f.bound, start_bound + c.vector + d.optimizer);
      fill += d.forward / parts + message_, back += (d.backward - d.prologue) / parts + message_;
      start += d.forward / parts + message_, start_bound += d.fill_bound;
      back_bound += std::max(0.0, d.back_bound - c.single_pass_saving);
      back_weights += d.weight_gradients / parts;
    }
    f.bound = std::max(f.bound, devices_[0].begin + path_bound(zero_bubble));
    f.bound = std::max(f.bound + least_update(), exchanged);
    f.time = end + profile_.at_the_end + update;
    f.once = f.time - f.computing - f.exposed - f.bubble;
  }

  // Update time after all passes. An early update runs when a stream would be idle, so it adds nothing.
  double least_update() const {
    double least = 0;
    for (const PipelineDevice& d : devices_.distinct())
      if (profile_.update_last) least = std::max(least, d.optimizer);
    return least;
  }

  // Time for a micro-batch to pass one chunk of every device in both directions. With fewer micro-batches
  // than that, a device waits before it continues with its next chunk.
  double round_trip() const {
    double round = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const PipelineDevice& d = devices_[i];
      round += (d.forward + d.backward - d.prologue) / s_.chunks + 2 * message_;
    }
    return round;
  }

  // Critical path of one micro-batch through all stages and back. Weight gradients may be deferred.
  double path_bound(bool zero_bubble) const {
    double way = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const PipelineDevice& d = devices_[i];
      way += d.forward_bound + (zero_bubble ? 0 : d.backward_bound - d.prologue_bound + d.handoff_saving);
      way -= costs_[devices_.which()[i]].single_pass_saving;
    }
    // No stage hands a gradient to the last one, so its prologue is not hidden.
    return way + (zero_bubble ? 0 : devices_.back().prologue_bound / s_.chunks);
  }

  // Savings of a single micro-batch. With several, the others take the same path without savings.
  double single_pass_saving(const PipelineDevice& d) const { return m_ == 1 ? saved(d) : 0; }

  // Exposed gradient exchange. Gradients of a layer are exchanged while those of earlier layers are computed.
  double exposed_exchange(const PipelineDevice& d) const {
    const double hidden = std::max(0.0, d.backward - d.busy[at(StreamKind::kComm)] / 2);
    return d.exchange > 0 ? std::max(std::min(d.one_exchange, d.exchange), d.exchange - hidden) : 0;
  }

  // Micro-batches whose activations a device holds at once, in units of all its layers.
  double in_flight(std::size_t device) const {
    const auto p = static_cast<double>(devices_.size()), behind = p - 1 - static_cast<double>(device);
    const double m = m_;
    if (s_.schedule == PlanSchedule::kGpipe) return m;
    if (s_.chunks == 1) return std::min(m, behind + 1);
    const double stages = 2 * behind + (s_.chunks - 1) * p + 1;
    return std::min(m, stages / s_.chunks);
  }

  // Backward passes of chunks before the last forward pass ends.
  double backward_passes_before_last(double in_flight) const { return (m_ - in_flight) * s_.chunks; }
  // Backward passes until each chunk has had one.
  std::int32_t passes_until_all_chunks_back() const { return (s_.chunks - 1) * passes_per_round() + 1; }

  // Live bytes when the last forward pass of the micro-batches in flight ends. Gradients exist only for
  // chunks that have had a backward pass. The first weight copies exist only if another round of forward
  // passes follows. In the last micro-batch weights are freed as gradients appear; `exchanged` is what is
  // left then. `missing`: gradients that do not exist yet.
  std::int64_t live_bytes(const PipelineDevice& d, double in_flight, std::int64_t kept, std::int64_t missing,
                          std::int64_t exchanged) const {
    const double back = backward_passes_before_last(in_flight);
    if (back - passes_per_round() * s_.chunks >= passes_until_all_chunks_back()) return d.state + kept;
    if (back >= passes_until_all_chunks_back()) return d.state - d.first_copies + kept;
    return std::max(d.state - missing - d.first_copies + kept, exchanged);
  }

  // Gradients that do not exist yet: chunks get them one after another, after the head.
  std::int64_t missing_gradients(const PipelineDevice& d, double in_flight) const {
    const double back = backward_passes_before_last(in_flight);
    if (back < 1) return d.gradients;
    const double share = std::max(0.0, 1 - back / passes_until_all_chunks_back());
    return static_cast<std::int64_t>(share * static_cast<double>(d.gradients - d.end_gradients));
  }

  // Zero bubble defers weight gradients. With few micro-batches no gradient sum exists while the last
  // activations are held.
  bool sums_before_the_last(std::size_t device, double in_flight) const {
    return s_.schedule != PlanSchedule::kZeroBubble || m_ >= in_flight + 2 + static_cast<double>(device);
  }

  void compute_memory(Forecast& f) const {
    const double in_a_row = std::max(1.0, static_cast<double>(m_) / s_[PlanAxis::kPipeline]);
    f.sweeps = s_.chunks > 1 ? in_a_row : m_;
    f.least_sweeps = s_.schedule == PlanSchedule::kZeroBubble ? in_a_row : f.sweeps;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const PipelineDevice& d = devices_[i];
      const double n = in_flight(i);
      const std::int64_t kept = kept_by(n, d.kept, d.first_chunk.kept, d.last_chunk.kept);
      const std::int64_t kept_fixed = kept_by(n, d.kept_fixed, d.first_chunk.fixed, d.last_chunk.fixed);
      f.least_swept = std::max(f.least_swept, d.least_swept);
      const std::int64_t least = sums_before_the_last(i, n) ? live_bytes(d, n, kept, d.gradients, 0)
                                                            : d.state - d.gradients - d.first_copies + kept;
      f.least_memory = std::max(f.least_memory, least - d.largest_kept);
      f.least_mean += d.state - d.gradients - d.copies;
      f.least_fixed = std::max({f.least_fixed, kept_fixed - d.largest_kept, d.largest_instr});
      f.least_memory = std::max(f.least_memory, f.least_fixed);
      const std::int64_t passing = transient_peak(d, i),
                         deferred = added_by_deferral(d.kept, d.deferred, i, n);
      const std::int64_t fixed = kept_fixed + added_by_deferral(d.kept_fixed, d.deferred_fixed, i, n);
      const std::int64_t update = d.gradients_fixed + std::max(d.squared, d.largest_update);
      f.fixed = std::max({f.fixed, fixed + d.fixed_peak, update});
      const std::int64_t all =
          live_bytes(d, n, kept, missing_gradients(d, n), d.state - d.copies) + passing + deferred;
      f.mean += all;
      if (all <= f.memory) continue;
      f.memory = all;
      set_movable(f, d, {.bytes = kept + deferred - fixed}, n);
      f.warmup_share = warmup_share(i);
      f.immovable = d.state - f.optimizer.bytes - f.weights.bytes - f.gradients.bytes + fixed + passing;
    }
    f.mean /= std::ssize(devices_.which()), f.least_mean /= std::ssize(devices_.which());
  }

  // `kept`: bytes of all micro-batches in flight and of deferred inputs. Tensor sizes are those of one
  // micro-batch.
  void set_movable(Forecast& f, const PipelineDevice& d, Movable kept, double in_flight) const {
    const auto share = [&](std::int64_t of_all) {
      const double times = static_cast<double>(kept.bytes) / static_cast<double>(d.moving.bytes);
      return d.moving.bytes > 0 ? static_cast<std::int64_t>(static_cast<double>(of_all) * times) : 0;
    };
    kept.tensors = share(d.moving.tensors), kept.empty = share(d.moving.empty);
    f.optimizer = d.once, f.masters = d.masters, f.weights = d.weights, f.gradients = d.summed;
    f.kept = kept, f.sweeps_of_kept = m_ / in_flight;
    f.largest_movable = d.largest_movable;
  }

  // Share of forward passes before the first backward pass; 1 with one chunk.
  double warmup_share(std::size_t device) const {
    if (s_.chunks == 1) return 1;
    return std::min(1.0, in_flight(device) / m_);
  }

  static std::int64_t kept_by(double micro_batches, std::int64_t of_one) {
    return static_cast<std::int64_t>(static_cast<double>(of_one) * micro_batches);
  }

  // Kept bytes at the end of a round's last forward pass through the last chunk, where the device is fullest.
  // Every chunk holds one round. Further micro-batches in flight have passed the first chunk again; missing
  // ones have not passed the last chunk.
  std::int64_t kept_by(double in_flight, std::int64_t of_one, std::int64_t of_first,
                       std::int64_t of_last) const {
    if (s_.chunks == 1) return kept_by(in_flight, of_one);
    const std::int32_t round = passes_per_round();
    const double more = s_.chunks * (in_flight - round);
    return round * of_one + kept_by(more, more > 0 ? of_first : of_last);
  }

  // Peak of temporary buffers. If the last round is not full, its micro-batches leave the last chunk before
  // their backward passes begin, and activations of the head wait as well.
  std::int64_t transient_peak(const PipelineDevice& d, std::size_t device) const {
    if (s_.chunks == 1 || device + 1 < devices_.size()) return std::max(d.peak, d.end_peak);
    const std::int32_t round = s_[PlanAxis::kPipeline];
    const std::int64_t waiting = m_ > round ? m_ % round : m_ - 1;
    const std::int64_t others = m_ > round ? std::max<std::int64_t>(0, waiting - 1) : waiting;
    return std::max(d.peak + waiting * d.end_kept, d.end_peak + others * d.end_kept);
  }

  // Bytes that deferral adds. ZB-H1 defers weight gradients of as many micro-batches as there are earlier
  // stages, and of one more until the first of them begin. Other micro-batches in flight are held in full.
  std::int64_t added_by_deferral(std::int64_t kept, std::int64_t deferred, std::size_t device,
                                 double in_flight) const {
    if (s_.schedule != PlanSchedule::kZeroBubble) return 0;
    const auto before = static_cast<std::int64_t>(device);
    const double all = std::min(static_cast<double>(m_), in_flight + static_cast<double>(before));
    const auto with = [&](std::int64_t off) {
      return off * deferred + kept_by(std::max(0.0, all - static_cast<double>(off)), kept);
    };
    const std::int64_t most = std::max(with(before), with(before + 1));
    return std::max<std::int64_t>(0, most - kept_by(in_flight, kept));
  }

  const Strategy& s_;
  const StepProfile& profile_;
  std::int32_t m_;
  double message_;
  const PipelineDevices& devices_;
  std::vector<DeviceCosts> costs_;  // by distinct device
};

}  // namespace

Forecast closed_form_bound(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                           const StepProfiles& profiles, const AxisPlacement* placement) {
  HR_CHECK(micro_batches > 0);
  const PipelineDevices devices = devices_of(strategy, model, profiles, Estimate::kLowerBound, placement);
  return StepFormula(strategy, micro_batches, *profiles.base, 0, devices).run();
}

Forecast closed_form_bound(const Strategy& strategy, std::int32_t micro_batches, const StepProfiles& profiles,
                           const PipelineDevices& devices) {
  HR_CHECK(micro_batches > 0);
  return StepFormula(strategy, micro_batches, *profiles.base, 0, devices).run();
}

double bound_with_extra(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                        const StepProfiles& profiles, const AxisPlacement* placement) {
  HR_CHECK(micro_batches > 0);
  const PipelineDevices devices =
      devices_of(strategy, model, profiles, Estimate::kLowerBoundWithExtra, placement);
  return StepFormula(strategy, micro_batches, *profiles.base, 0, devices).run().bound;
}

Forecast closed_form(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                     const StepProfiles& profiles, double message) {
  HR_CHECK(micro_batches > 0);
  const PipelineDevices devices = devices_of(strategy, model, profiles, Estimate::kExpected, nullptr);
  return StepFormula(strategy, micro_batches, *profiles.base, message, devices).run();
}

}  // namespace hyperrun

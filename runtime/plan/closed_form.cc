#include "runtime/plan/closed_form.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/plan/pipeline_devices.h"

namespace hyperrun {
namespace {

// What is the same for all devices that do the same, ns.
struct Costs {
  double pass = 0, passes = 0;  // of a micro-batch, of all
  double exposed = 0;           // of the exchange of gradients
  double least_passes = 0;      // all passes, at least: one behind the other, on any stream
  double in_a_row = 0;          // one behind the other
  // Stream by stream, at least.
  double vector = 0, comm = 0;
  double only_saved = 0;
  // Until gradients are exchanged: before which the first pass does not begin, then forward passes and what
  // must have come back.
  double gathered = 0, forwards = 0, backwards = 0;
};

class Form {
 public:
  // `devices` outlive it.
  Form(const Strategy& s, std::int32_t micro_batches, const Pieces& pieces, double message,
       const PipelineDevices& devices)
      : s_(s), pieces_(pieces), m_(micro_batches), message_(message), devices_(devices) {
    costs_.reserve(devices_.distinct().size());
    for (const PipelineDevice& d : devices_.distinct()) costs_.push_back(costs_of(d));
  }

  Forecast run() {
    Forecast f;
    take_time(f);
    take_memory(f);
    return f;
  }

 private:
  static constexpr std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

  Costs costs_of(const PipelineDevice& d) const {
    Costs c;
    c.pass = pass(d), c.passes = m_ * c.pass;
    c.exposed = exposed_exchange(d);
    c.in_a_row = passes_in_a_row(d), c.least_passes = passes_bound(d, c.in_a_row);
    c.vector = stream_bound(d, StreamKind::kVector), c.comm = stream_bound(d, StreamKind::kComm);
    c.only_saved = only_saved(d);
    take_until_exchange(d, c);
    return c;
  }

  // At least: both passes of all micro-batches, on whichever stream is busiest. Weights that ZeRO gathers in
  // them are there before the first pass begins, and what it scatters of the last one holds up nobody's way
  // back: where it does, collectives bound a step apart.
  double passes_bound(const PipelineDevice& d, double in_a_row) const {
    double busiest = in_a_row;
    for (std::size_t s = 0; s < kStreams; ++s)
      if (s != at(StreamKind::kComm) || !exchanges_state())
        busiest = std::max(busiest, stream_bound(d, static_cast<StreamKind>(s)));
    return busiest;
  }
  // Products of gradients of weights that are put off come between others.
  double passes_in_a_row(const PipelineDevice& d) const {
    const double weights = is_split() ? d.weights_bound : 0;
    return m_ * (d.forward_bound + backward_bound(d) + weights) - saved(d);
  }
  double backward_bound(const PipelineDevice& d) const {
    return std::max(0.0, is_split() ? d.split_bound : d.backward_bound + d.scattering_bound);
  }
  bool is_split() const { return s_.schedule == PlanSchedule::kZeroBubble; }
  double stream_bound(const PipelineDevice& d, StreamKind s) const {
    return m_ * d.least_busy[at(s)] - d.saved[at(s)];
  }
  // A pass is no more shorter than all its instructions together.
  static double saved(const PipelineDevice& d) {
    return std::accumulate(d.saved.begin(), d.saved.end(), 0.0);
  }
  bool exchanges_state() const { return s_.zero >= 2; }

  // Before gradients of the last micro-batch are there, which are added up then: all forward passes and all
  // backward passes but its own have ended, and of several stages a device those of the last round of all but
  // its last stage are not wanted. Zero bubble may put off gradients of weights. Copies of weights are
  // gathered before anything else is communicated: no more than a layer is computed ahead of them where each
  // layer communicates, else no more than a round of forward passes.
  void take_until_exchange(const PipelineDevice& d, Costs& c) const {
    const double parts = s_.chunks;
    const std::int32_t round = round_of_passes();
    const double backward = (m_ - round + (round - 1) / parts) * backward_bound(d);
    const double ahead = d.all_exchange ? d.one_forward : round * d.forward_bound;
    c.gathered = d.least_gather - ahead;
    c.forwards = m_ * d.forward_bound, c.backwards = std::max(0.0, backward - saved(d));
  }

  // Micro-batches that go through one of a device's stages before any goes through its next.
  std::int32_t round_of_passes() const { return s_.chunks > 1 ? std::min(m_, s_[PlanAxis::kPipeline]) : 1; }

  double pass(const PipelineDevice& d) const {
    const double backward = is_split() ? d.split + put_off(d) : d.backward;
    return std::max(d.forward + backward, *std::ranges::max_element(d.busy));
  }

  // Gradients of weights hide what they are scattered by. What is left of that holds up the next pass, where
  // it communicates as well.
  static double put_off(const PipelineDevice& d) { return d.forward_comm > 0 ? d.exchanged : d.put_off_time; }

  void take_time(Forecast& f) {
    const double parts = s_.chunks;
    double fill = 0, back = 0, back_bound = 0, end = 0;
    // Of a device's first pass: not before its own begin, nor before what comes from the device before it.
    double start = 0, start_bound = 0;
    double update = 0, exchanged = 0, back_weights = 0;
    const bool zero_bubble = s_.schedule == PlanSchedule::kZeroBubble;
    const double round = round_trip();
    // Of the last round of micro-batches through a device's stages, which they may not fill.
    const std::int32_t rest = m_ % s_[PlanAxis::kPipeline], last_round = rest > 0 ? rest : m_;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const PipelineDevice& d = devices_[i];
      const Costs& c = costs_[devices_.which()[i]];
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
      if (!pieces_.update_last) f.bound = std::max(f.bound, start_bound + c.vector + d.optimizer);
      fill += d.forward / parts + message_, back += (d.backward - d.ahead) / parts + message_;
      start += d.forward / parts + message_, start_bound += d.fill_bound;
      back_bound += std::max(0.0, d.back_bound - c.only_saved);
      back_weights += d.weight_gradients / parts;
    }
    f.bound = std::max(f.bound, devices_[0].begin + whole_way(zero_bubble));
    f.bound = std::max(f.bound + least_update(), exchanged);
    f.time = end + pieces_.at_the_end + update;
    f.once = f.time - f.computing - f.exposed - f.bubble;
  }

  // Behind all passes: what comes amid them does so where a stream has nothing else to do.
  double least_update() const {
    double least = 0;
    for (const PipelineDevice& d : devices_.distinct())
      if (pieces_.update_last) least = std::max(least, d.optimizer);
    return least;
  }

  // Until what a stage hands on has come through one stage of every device, in both directions: a device has
  // nothing else to do in its next stage if there are too few micro-batches to fill that.
  double round_trip() const {
    double round = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const PipelineDevice& d = devices_[i];
      round += (d.forward + d.backward - d.ahead) / s_.chunks + 2 * message_;
    }
    return round;
  }

  // A micro-batch goes through all stages, one after the other; gradients of weights may be put off.
  double whole_way(bool zero_bubble) const {
    double way = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const PipelineDevice& d = devices_[i];
      way += d.forward_bound + (zero_bubble ? 0 : d.backward_bound - d.ahead_bound + d.early_bound);
      way -= costs_[devices_.which()[i]].only_saved;
    }
    // To the last stage nobody hands on.
    return way + (zero_bubble ? 0 : devices_.back().ahead_bound / s_.chunks);
  }

  // Of a single micro-batch, which is the first: others go the same way with nothing saved.
  double only_saved(const PipelineDevice& d) const { return m_ == 1 ? saved(d) : 0; }

  // Gradients of a layer are exchanged while those of the layers before are computed.
  double exposed_exchange(const PipelineDevice& d) const {
    const double hidden = std::max(0.0, d.backward - d.busy[at(StreamKind::kComm)] / 2);
    return d.exchange > 0 ? std::max(std::min(d.one_exchange, d.exchange), d.exchange - hidden) : 0;
  }

  // Micro-batches, in those of all a device's layers, that are kept at once.
  double under_way(std::size_t device) const {
    const auto p = static_cast<double>(devices_.size()), behind = p - 1 - static_cast<double>(device);
    const double m = m_;
    if (s_.schedule == PlanSchedule::kGpipe) return m;
    if (s_.chunks == 1) return std::min(m, behind + 1);
    const double stages = 2 * behind + (s_.chunks - 1) * p + 1;
    return std::min(m, stages / s_.chunks);
  }

  // Backward passes of a device's stages before the last of its forward passes ends.
  double passes_back(double under_way) const { return (m_ - under_way) * s_.chunks; }
  // Until each of its stages has had one.
  std::int32_t all_stages_back() const { return (s_.chunks - 1) * round_of_passes() + 1; }

  // What lives with what is kept of `under_way` micro-batches, when the forward pass of the last of them
  // ends: gradients only of stages that had a backward pass before, the first weights only if another round
  // of forward passes follows. Of a last micro-batch weights go as gradients come, and those are exchanged as
  // they do: `exchanged` what they leave then. `missing`: gradients that are not there otherwise.
  std::int64_t beside(const PipelineDevice& d, double under_way, std::int64_t kept, std::int64_t missing,
                      std::int64_t exchanged) const {
    const double back = passes_back(under_way);
    if (back - round_of_passes() * s_.chunks >= all_stages_back()) return d.state + kept;
    if (back >= all_stages_back()) return d.state - d.first_copies + kept;
    return std::max(d.state - missing - d.first_copies + kept, exchanged);
  }

  // One stage after the other has them, behind those of the head.
  std::int64_t missing_gradients(const PipelineDevice& d, double under_way) const {
    const double back = passes_back(under_way);
    if (back < 1) return d.gradients;
    const double share = std::max(0.0, 1 - back / all_stages_back());
    return static_cast<std::int64_t>(share * static_cast<double>(d.gradients - d.end_gradients));
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
      const PipelineDevice& d = devices_[i];
      const double n = under_way(i);
      const std::int64_t kept = kept_by(n, d.kept, d.first_stage.kept, d.last_stage.kept);
      const std::int64_t kept_here = kept_by(n, d.kept_here, d.first_stage.here, d.last_stage.here);
      f.least_swept = std::max(f.least_swept, d.least_swept);
      const std::int64_t least = sums_before_the_last(i, n) ? beside(d, n, kept, d.gradients, 0)
                                                            : d.state - d.gradients - d.first_copies + kept;
      f.least_memory = std::max(f.least_memory, least - d.largest_kept);
      f.least_mean += d.state - d.gradients - d.copies;
      f.least_here = std::max({f.least_here, kept_here - d.largest_kept, d.at_once});
      f.least_memory = std::max(f.least_memory, f.least_here);
      const std::int64_t passing = passes(d, i), put_off = added_by_put_off(d.kept, d.put_off, i, n);
      const std::int64_t here = kept_here + added_by_put_off(d.kept_here, d.put_off_here, i, n);
      const std::int64_t update = d.gradients_here + std::max(d.squared, d.updated_at_once);
      f.here = std::max({f.here, here + d.here_peak, update});
      const std::int64_t all =
          beside(d, n, kept, missing_gradients(d, n), d.state - d.copies) + passing + put_off;
      f.mean += all;
      if (all <= f.memory) continue;
      f.memory = all;
      take_movable(f, d, {.bytes = kept + put_off - here}, n);
      f.ahead = ahead(i);
      f.stays = d.state - f.optimizer.bytes - f.weights.bytes - f.gradients.bytes + here + passing;
    }
    f.mean /= std::ssize(devices_.which()), f.least_mean /= std::ssize(devices_.which());
  }

  // `kept`: of `under_way` micro-batches, and of what is put off; its tensors are as large as those of one.
  void take_movable(Forecast& f, const PipelineDevice& d, Movable kept, double under_way) const {
    const auto share = [&](std::int64_t of_all) {
      const double times = static_cast<double>(kept.bytes) / static_cast<double>(d.moving.bytes);
      return d.moving.bytes > 0 ? static_cast<std::int64_t>(static_cast<double>(of_all) * times) : 0;
    };
    kept.tensors = share(d.moving.tensors), kept.empty = share(d.moving.empty);
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

  // Of several stages, where a round's last pass through the last one ends: each has those of a round, and
  // what is under way besides has been through the first one again; what lacks has not yet been through the
  // last. The first one is then fullest, as it is at the end of any round.
  std::int64_t kept_by(double under_way, std::int64_t of_one, std::int64_t of_first,
                       std::int64_t of_last) const {
    if (s_.chunks == 1) return kept_by(under_way, of_one);
    const std::int32_t round = round_of_passes();
    const double more = s_.chunks * (under_way - round);
    return round * of_one + kept_by(more, more > 0 ? of_first : of_last);
  }

  // Most that lives for a moment. Where micro-batches do not fill the last round through a device's stages,
  // those of it are through the last stage sooner than their way back begins: what is kept behind the layers
  // is so meanwhile.
  std::int64_t passes(const PipelineDevice& d, std::size_t device) const {
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
  const Pieces& pieces_;
  std::int32_t m_;
  double message_;
  const PipelineDevices& devices_;
  std::vector<Costs> costs_;  // of those that differ
};

}  // namespace

Forecast least_form(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                    const LayersPieces& pieces, const Lying* lying) {
  HR_CHECK(micro_batches > 0);
  const PipelineDevices devices = devices_of(strategy, model, pieces, Of::kBound, lying);
  return Form(strategy, micro_batches, *pieces.pieces, 0, devices).run();
}

Forecast least_form(const Strategy& strategy, std::int32_t micro_batches, const LayersPieces& pieces,
                    const PipelineDevices& devices) {
  HR_CHECK(micro_batches > 0);
  return Form(strategy, micro_batches, *pieces.pieces, 0, devices).run();
}

double bound_of_more(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                     const LayersPieces& pieces, const Lying* lying) {
  HR_CHECK(micro_batches > 0);
  const PipelineDevices devices = devices_of(strategy, model, pieces, Of::kBoundOfMore, lying);
  return Form(strategy, micro_batches, *pieces.pieces, 0, devices).run().bound;
}

Forecast closed_form(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                     const LayersPieces& pieces, double message) {
  HR_CHECK(micro_batches > 0);
  const PipelineDevices devices = devices_of(strategy, model, pieces, Of::kStep, nullptr);
  return Form(strategy, micro_batches, *pieces.pieces, message, devices).run();
}

}  // namespace hyperrun

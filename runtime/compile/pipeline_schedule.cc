#include "runtime/compile/pipeline_schedule.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class Scheduler {
 public:
  Scheduler(const PipelineSpec& spec, int devices, int micro_batches, int slack)
      : slack_(slack),
        all_forward_first_(spec.schedule == "gpipe"),
        split_(spec.schedule == "zero_bubble"),
        devices_(devices),
        micro_batches_(micro_batches),
        stages_(spec.stages.empty() ? std::vector<PipelineSpec::Stage>(1) : spec.stages),
        progress_(stages_.size()),
        free_at_(at(devices), 0),
        slots_(at(devices)) {
    for (Progress& p : progress_)
      p.forward_end.resize(at(micro_batches)), p.backward_end.resize(at(micro_batches));
  }

  // Empty when the room for activations is too small for this placement.
  std::vector<std::vector<TimedSlot>> run() {
    std::size_t left = stages_.size() * at(micro_batches_) * (split_ ? 3 : 2);
    for (std::int64_t now = 0; left > 0;) {
      for (int d = 0; d < devices_; ++d)
        for (auto next = choose(d, now); next; next = choose(d, now)) begin(d, *next, now), --left;
      std::int64_t later = std::numeric_limits<std::int64_t>::max();
      for (const std::int64_t t : free_at_)
        if (t > now) later = std::min(later, t);
      if (left > 0 && later == std::numeric_limits<std::int64_t>::max()) return {};
      now = later;
    }
    return std::move(slots_);
  }

 private:
  struct Progress {
    int forward = 0, backward = 0, weights = 0;  // micro-batches begun
    std::vector<std::int64_t> forward_end, backward_end;
  };

  int stages() const { return static_cast<int>(stages_.size()); }

  std::optional<Slot> choose(int device, std::int64_t now) const {
    if (free_at_[at(device)] > now) return std::nullopt;
    const Load load = load_of(device);
    if (const int v = next_forward(device); v >= 0 && load.wants_forward) {
      if (load.has_room && forward_ready(v, now))
        return Slot{SlotKind::kForward, v, progress_[at(v)].forward};
    } else if (const int b = next_backward(device); b >= 0 && backward_ready(b, now)) {
      return Slot{split_ ? SlotKind::kInputGradient : SlotKind::kBackward, b, progress_[at(b)].backward};
    }
    if (const int v = next_weights(device); v >= 0)
      return Slot{SlotKind::kWeightGradient, v, progress_[at(v)].weights};
    return std::nullopt;
  }

  // The stage of the device whose turn it is. Of several: as many micro-batches as there are devices in one,
  // then as many in the next.
  int next_forward(int device) const {
    return first(
        device, [&](int v) { return std::tuple(progress_[at(v)].forward / devices_, v); },
        [&](int v) { return progress_[at(v)].forward < micro_batches_; });
  }
  int next_backward(int device) const {
    return first(
        device, [&](int v) { return std::tuple(progress_[at(v)].backward / devices_, -v); },
        [&](int v) { return progress_[at(v)].backward < micro_batches_; });
  }
  int next_weights(int device) const {
    return first(
        device, [&](int v) { return std::tuple(progress_[at(v)].weights, -v); },
        [&](int v) { return split_ && progress_[at(v)].weights < progress_[at(v)].backward; });
  }
  template <class Key, class Wants>
  int first(int device, Key key, Wants wants) const {
    int best = -1;
    for (int v = 0; v < stages(); ++v)
      if (stages_[at(v)].device == device && wants(v) && (best < 0 || key(v) < key(best))) best = v;
    return best;
  }

  bool forward_ready(int v, std::int64_t now) const {
    const Progress& p = progress_[at(v)];
    return v == 0 || (p.forward < progress_[at(v - 1)].forward &&
                      progress_[at(v - 1)].forward_end[at(p.forward)] <= now);
  }

  struct Load {
    bool wants_forward;  // or else a backward pass: they take turns once as many micro-batches are under way
                         // as keep the stages behind busy
    bool has_room;       // for the activations of one more micro-batch
  };
  Load load_of(int device) const {
    int flowing = 0, held = 0, own = 0, last = 0, first = stages();
    for (int v = 0; v < stages(); ++v) {
      if (stages_[at(v)].device != device) continue;
      const Progress& p = progress_[at(v)];
      flowing += p.forward - p.backward;
      held += p.forward - p.weights;
      first = std::min(first, v), last = std::max(last, v), ++own;
    }
    const int behind = stages() - 1 - last;
    const int most = (own == 1 ? behind : 2 * behind + (last - first)) + 1 + slack_;
    return {all_forward_first_ || flowing < most, !split_ || held < std::max(most, stages() + slack_)};
  }

  bool backward_ready(int v, std::int64_t now) const {
    const Progress& p = progress_[at(v)];
    if (p.backward >= p.forward || (all_forward_first_ && !all_forward(stages_[at(v)].device))) return false;
    if (p.forward_end[at(p.backward)] > now) return false;
    return v + 1 == stages() || (p.backward < progress_[at(v + 1)].backward &&
                                 progress_[at(v + 1)].backward_end[at(p.backward)] <= now);
  }

  bool all_forward(int device) const {
    for (int v = 0; v < stages(); ++v)
      if (stages_[at(v)].device == device && progress_[at(v)].forward < micro_batches_) return false;
    return true;
  }

  void begin(int device, const Slot& slot, std::int64_t now) {
    Progress& p = progress_[at(slot.stage)];
    const std::int64_t layers = std::max(1, stages_[at(slot.stage)].layers);
    const std::int64_t end = now + layers * (slot.kind == SlotKind::kBackward ? 2 : 1);
    switch (slot.kind) {
      case SlotKind::kForward: p.forward_end[at(p.forward++)] = end; break;
      case SlotKind::kBackward:
      case SlotKind::kInputGradient: p.backward_end[at(p.backward++)] = end; break;
      case SlotKind::kWeightGradient: ++p.weights; break;
    }
    free_at_[at(device)] = end;
    slots_[at(device)].push_back({slot, now, end});
  }

  int slack_;
  bool all_forward_first_, split_;
  int devices_, micro_batches_;
  std::vector<PipelineSpec::Stage> stages_;
  std::vector<Progress> progress_;  // by stage
  std::vector<std::int64_t> free_at_;
  std::vector<std::vector<TimedSlot>> slots_;
};

}  // namespace

std::vector<std::vector<TimedSlot>> pipeline_schedule(const PipelineSpec& spec, int devices,
                                                      int micro_batches) {
  const int most = micro_batches * std::max(1, static_cast<int>(spec.stages.size()));
  for (int slack = 0; slack <= most; ++slack)
    if (auto slots = Scheduler(spec, devices, micro_batches, slack).run(); !slots.empty()) return slots;
  HR_CHECK(false, "no schedule");
  return {};
}

}  // namespace hyperrun

#include "runtime/compile/pipeline_schedule.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class Scheduler {
 public:
  Scheduler(const PipelineSpec& spec, int devices, int micro_batches, Turns turns, int slack)
      : slack_(slack),
        paired_(turns == Turns::kPaired),
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

  // The schedule; empty if the room for activations is too small for this placement.
  std::vector<std::vector<TimedSlot>> run() {
    std::size_t left = stages_.size() * at(micro_batches_) * (split_ ? 3 : 2);
    for (std::int64_t now = 0; left > 0;) {
      for (int d = 0; d < devices_; ++d)
        for (auto next = choose(d, now); !next.empty(); next = choose(d, now)) {
          begin(d, next, now);
          left -= next.size();
        }
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
    int forward = 0, backward = 0, weights = 0;  // number of micro-batches begun
    std::vector<std::int64_t> forward_end, backward_end;
  };

  int stages() const { return static_cast<int>(stages_.size()); }

  // The next slot of the device, or a pair; empty: the device waits.
  std::vector<Slot> choose(int device, std::int64_t now) const {
    if (free_at_[at(device)] > now) return {};
    const Load load = load_of(device);
    const int f = next_forward(device), b = next_backward(device);
    const bool forward = f >= 0 && load.has_room && forward_ready(f, now);
    const bool backward = b >= 0 && backward_ready(b, now);
    if (f >= 0 && load.wants_forward) {
      if (forward) return {forward_slot(f)};
    } else if (paired_ && f >= 0) {
      if (forward && backward) return {forward_slot(f), backward_slot(b, true)};
    } else if (backward) {
      return {backward_slot(b, false)};
    }
    if (const int v = next_weights(device); v >= 0)
      return {Slot{SlotKind::kWeightGradient, v, progress_[at(v)].weights}};
    return {};
  }

  Slot forward_slot(int stage) const { return {SlotKind::kForward, stage, progress_[at(stage)].forward}; }
  Slot backward_slot(int stage, bool beside) const {
    const SlotKind kind = split_ ? SlotKind::kInputGradient : SlotKind::kBackward;
    return {kind, stage, progress_[at(stage)].backward, beside};
  }

  // The stage of the device whose turn it is. With several stages on a device, one takes as many
  // micro-batches as there are devices, then the next takes as many.
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
    bool wants_forward;  // fewer micro-batches are under way than keep the later stages busy; else a backward
                         // pass has priority
    bool has_room;       // there is room for the activations of one more micro-batch
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
    const int most = most_flowing(own, first, last);
    const int room = std::max(most + (paired_ ? 1 : 0), stages() + slack_);
    return {all_forward_first_ || flowing < most, !split_ || held < room};
  }

  // The number of micro-batches that keep the later stages busy until the first one comes back from them.
  // With pairs each stage on the way takes the time of a pair, there and back.
  int most_flowing(int own, int first, int last) const {
    const int behind = stages() - 1 - last;
    if (paired_) return 2 * (stages() - 1 - first) + 1 + slack_;
    return (own == 1 ? behind : 2 * behind + (last - first)) + 1 + slack_;
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

  // The slots of a pair end together.
  void begin(int device, const std::vector<Slot>& slots, std::int64_t now) {
    std::int64_t end = now;
    for (const Slot& slot : slots) {
      const std::int64_t layers = std::max(1, stages_[at(slot.stage)].layers);
      end += layers * (slot.kind == SlotKind::kBackward ? 2 : 1);
    }
    free_at_[at(device)] = end;
    for (const Slot& slot : slots) note(device, {slot, now, end});
  }

  void note(int device, const TimedSlot& timed) {
    Progress& p = progress_[at(timed.slot.stage)];
    switch (timed.slot.kind) {
      case SlotKind::kForward: p.forward_end[at(p.forward++)] = timed.end; break;
      case SlotKind::kBackward:
      case SlotKind::kInputGradient: p.backward_end[at(p.backward++)] = timed.end; break;
      case SlotKind::kWeightGradient: ++p.weights; break;
    }
    slots_[at(device)].push_back(timed);
  }

  int slack_;
  bool paired_;
  bool all_forward_first_, split_;
  int devices_, micro_batches_;
  std::vector<PipelineSpec::Stage> stages_;
  std::vector<Progress> progress_;  // by stage
  std::vector<std::int64_t> free_at_;
  std::vector<std::vector<TimedSlot>> slots_;
};

}  // namespace

std::vector<std::vector<TimedSlot>> pipeline_schedule(const PipelineSpec& spec, int devices,
                                                      int micro_batches, Turns turns) {
  const int most = micro_batches * std::max(1, static_cast<int>(spec.stages.size()));
  for (int slack = 0; slack <= most; ++slack)
    if (auto slots = Scheduler(spec, devices, micro_batches, turns, slack).run(); !slots.empty())
      return slots;
  HR_CHECK(false, "no schedule");
  return {};
}

}  // namespace hyperrun

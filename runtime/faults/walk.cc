#include "runtime/faults/walk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "runtime/faults/healthy_devices.h"

namespace hyperrun {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Steps from a restored state on, at one speed, with a save after each `work` seconds' worth of steps. A save
// begins `stall` before the next steps do, and can be used `latency` after its begin.
struct Segment {
  double begin = 0;  // time
  double from = 0;   // seconds of steps that were done before
  double speed = 1;  // seconds of steps a second, between saves
  double work = 1;   // seconds of steps between saves
  SaveCost save;

  double period() const { return work / speed + save.stall; }
  // Seconds of steps done at a time.
  double reached(double time) const {
    const double x = time - begin, periods = std::floor(x / period());
    return from + periods * work + std::min((x - periods * period()) * speed, work);
  }
  std::int64_t saves(double time) const {
    const double x = time - begin - save.delay();
    return x < 0 ? 0 : static_cast<std::int64_t>(std::floor(x / period()));
  }
  double saved(double time) const { return from + static_cast<double>(saves(time)) * work; }
  // The first save that begins at `time` or later: when it can be used, and what it has.
  std::pair<double, double> next_save(double time) const {
    const double x = time - begin + save.stall;
    const double j = std::max(1.0, std::ceil(x / period()));
    return {begin + j * period() + save.delay(), from + j * work};
  }
};

class Walk {
 public:
  Walk(const FaultWalk& what, std::span<const Fault> faults)
      : what_(what),
        faults_(faults),
        wanted_(what.run.devices),
        healthy_(wanted_ + (what.policy.spares ? spares_of(what.spec, wanted_) : 0)),
        world_{wanted_, what.run.replica} {
    start_steps(0, wanted_);
  }

  FaultOutcome run() {
    const double horizon = what_.spec.horizon;
    for (;;) {
      const double fault = next_ < faults_.size() ? faults_[next_].time : kNever;
      const double repair = healthy_.next_repair();
      const double time = std::min({fault, repair, phase_end_, horizon});
      if (time >= horizon) break;
      if (time == phase_end_)
        end_phase(time);
      else if (time == repair)
        take_back(time);
      else
        suffer(faults_[next_++]);
    }
    end(horizon);
    return out_;
  }

 private:
  enum class Phase { kSteps, kNoticing, kWaiting, kReturning };

  // --- phases ---

  void begin(Phase phase, double time, double end) { phase_ = phase, phase_begin_ = time, phase_end_ = end; }

  void start_steps(double time, std::int32_t devices) {
    devices_ = devices;
    segment_ = segment_from(time);
    begin(Phase::kSteps, time, kNever);
    grow_at_next_save(time);
  }

  Segment segment_from(double time) const {
    const bool copies = what_.policy.copies;
    Segment s{.begin = time, .from = done_, .speed = speed_with(what_.run, devices_)};
    s.work = static_cast<double>(what_.save_every) * what_.costs.step;
    s.save = copies ? what_.costs.copy : what_.costs.disk;
    if (copies) s.speed /= 1 + s.speed * what_.costs.disk.stall / what_.spec.copies.disk_every;
    return s;
  }

  void grow_at_next_save(double time) {
    if (phase_ != Phase::kSteps || phase_end_ < kNever) return;
    if (devices_to_go_on(what_.policy, world_, healthy_.count()) > devices_)
      std::tie(phase_end_, grown_from_) = segment_.next_save(time);
  }

  void end_phase(double time) {
    switch (phase_) {
      case Phase::kSteps:
        account_steps(time, grown_from_);
        take_save(time, grown_from_);
        ++out_.changes;
        go_back(time);
        break;
      case Phase::kNoticing:
        out_.noticing += time - phase_begin_;
        go_back(time);
        break;
      case Phase::kReturning:
        account_return(time);
        start_steps(time, devices_);
        break;
      case Phase::kWaiting: break;  // ends by a repair
    }
  }

  // Starts on the devices that are there, or waits.
  void go_back(double time) {
    undo();
    devices_ = devices_to_go_on(what_.policy, world_, healthy_.count());
    if (devices_ == 0) return begin(Phase::kWaiting, time, kNever);
    const bool from_copy = what_.policy.copies && copies_;
    reading_ = from_copy ? what_.costs.fetch : what_.costs.read;
    begin(Phase::kReturning, time, time + what_.spec.delays.starting() + reading_);
  }

  // --- events ---

  void take_back(double time) {
    healthy_.take_back();
    if (phase_ == Phase::kWaiting && devices_to_go_on(what_.policy, world_, healthy_.count()) > 0) {
      out_.waiting += time - phase_begin_;
      go_back(time);
    } else {
      grow_at_next_save(time);
    }
  }

  void suffer(const Fault& fault) {
    const bool hits_run = fault.place < devices_in_use();
    if (hits_run) interrupt(fault.time);
    lose(fault);
    if (hits_run) notice(fault.time);
  }

  std::int32_t devices_in_use() const {
    return phase_ == Phase::kSteps || phase_ == Phase::kReturning ? devices_ : 0;
  }

  // Ends the phase that the fault hits.
  void interrupt(double time) {
    ++out_.faults;
    if (phase_ == Phase::kReturning) return account_return(time);
    account_steps(time, segment_.reached(time));
    if (segment_.saves(time) > 0) take_save(time, segment_.saved(time));
  }

  void take_save(double time, double saved) {
    kept_ = saved;
    copies_ = true, exposed_ = 0;
    on_disk_ = what_.policy.copies ? written(segment_.reached(time)) : saved;
  }

  void lose(const Fault& fault) {
    const std::int32_t gone = healthy_.lose(what_.spec, fault, devices_in_use());
    if (gone == 0) return;
    if (fault.kind == FaultKind::kDevice || !what_.policy.copies) return;  // the host's memory stays
    if (fault.partner * wanted_ < exposed_) copies_ = false;
    exposed_ += gone;
  }

  // Undoes steps of which no save or copy is left.
  void undo() {
    if (what_.policy.copies && !copies_) kept_ = on_disk_;
    out_.lost += done_ - kept_;
    out_.useful -= done_ - kept_;
    done_ = kept_;
  }

  void notice(double time) {
    undo();
    const FaultDelays& d = what_.spec.delays;
    begin(Phase::kNoticing, time, time + d.detection + (what_.policy.person ? d.reaction : 0));
  }

  void end(double time) {
    switch (phase_) {
      case Phase::kSteps: account_steps(time, segment_.reached(time)); break;
      case Phase::kNoticing: out_.noticing += time - phase_begin_; break;
      case Phase::kWaiting: out_.waiting += time - phase_begin_; break;
      case Phase::kReturning: account_return(time); break;
    }
  }

  // --- accounts ---

  // Steps until `time` have come to `reached`.
  void account_steps(double time, double reached) {
    const double steps = reached - segment_.from, spent = steps / speed_with(what_.run, devices_);
    out_.useful += steps;
    out_.slower += spent - steps;
    out_.saving += time - segment_.begin - spent;
    done_ = reached;
  }

  void account_return(double time) {
    const double spent = time - phase_begin_, starting = std::min(spent, what_.spec.delays.starting());
    out_.starting += starting;
    out_.reading += spent - starting;
  }

  // What lies on disk beside copies in memory, once steps have come to `reached`.
  double written(double reached) const {
    const double every = what_.spec.copies.disk_every;
    const double begun = reached - what_.costs.disk.latency * segment_.speed;
    return std::max(on_disk_, std::floor(begun / every) * every);
  }

  const FaultWalk& what_;
  std::span<const Fault> faults_;
  std::size_t next_ = 0;
  FaultOutcome out_;

  std::int32_t wanted_ = 1;
  HealthyDevices healthy_;
  std::int32_t devices_ = 1;  // of the steps or of the return that is under way
  FaultedWorld world_;

  Phase phase_ = Phase::kSteps;
  double phase_begin_ = 0, phase_end_ = kNever;
  Segment segment_;
  double reading_ = 0;
  double grown_from_ = 0;  // what the save has after which the run goes on with more devices

  // Seconds of steps: done, in the latest usable save or copy, and on disk.
  double done_ = 0, kept_ = 0, on_disk_ = 0;
  bool copies_ = true;        // each part of the state is in some host's memory
  std::int32_t exposed_ = 0;  // devices whose hosts' memory has gone since the latest copy
};

}  // namespace

FaultOutcome walk(const FaultWalk& what, std::span<const Fault> faults) { return Walk(what, faults).run(); }

}  // namespace hyperrun

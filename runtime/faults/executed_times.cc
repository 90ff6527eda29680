#include "runtime/faults/executed_times.h"

#include <algorithm>
#include <utility>

namespace hyperrun {

void ExecutedTimes::begin(double time) {
  if (phase_ != Phase::kBefore) return;
  phase_ = Phase::kSteps;
  until_ = time;
}

void ExecutedTimes::step(std::int64_t number, double begin, double end, bool on_all, bool after_save) {
  const bool follows_a_step = !lasting_.empty() || undone_ > 0;
  this->begin(begin);
  const bool goes_on = phase_ == Phase::kSteps && follows_a_step;
  if (phase_ != Phase::kSteps || (goes_on && after_save)) end_phase(begin);
  if (goes_on && after_save) ++saves_;
  phase_ = Phase::kSteps;
  const double time = end - std::exchange(until_, end);
  lasting_.push_back({number, time});
  if (on_all) on_all_.push_back(time);
}

// The time until now belongs to the present phase; of steps it is what a save took.
void ExecutedTimes::end_phase(double time) {
  const double spent = time - std::exchange(until_, time);
  switch (phase_) {
    case Phase::kBefore: break;
    case Phase::kSteps: out_.saving += spent; break;
    case Phase::kNoticing: out_.noticing += spent; break;
    case Phase::kStarting: out_.starting += spent; break;
    case Phase::kReading: out_.reading += spent; break;
  }
}

void ExecutedTimes::fault(double time) {
  if (phase_ == Phase::kBefore) return;
  time = std::max(time, until_);  // a step that has ended after it was done all the same
  ++out_.faults;
  if (phase_ == Phase::kSteps)
    out_.lost += time - std::exchange(until_, time);
  else
    end_phase(time);
  phase_ = Phase::kNoticing;
}

void ExecutedTimes::undo(std::int64_t from) {
  while (!lasting_.empty() && lasting_.back().number > from) {
    undone_time_ += lasting_.back().time;
    ++undone_;
    lasting_.pop_back();
  }
}

void ExecutedTimes::waited(double from, double to) {
  if (phase_ == Phase::kBefore) return;
  end_phase(from);
  out_.waiting += to - from;
  until_ = to;
}

void ExecutedTimes::start(double time) {
  if (phase_ == Phase::kBefore) return;
  if (phase_ == Phase::kSteps) {  // a planned return to more devices: the old processes end first
    ++out_.changes;
    phase_ = Phase::kStarting;
  }
  end_phase(time);
  phase_ = Phase::kStarting;
}

void ExecutedTimes::read(double time) {
  if (phase_ != Phase::kStarting) return;
  end_phase(time);
  phase_ = Phase::kReading;
}

double ExecutedTimes::step_on_all() const {
  if (on_all_.empty()) return 0;
  std::vector<double> times = on_all_;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

FaultOutcome ExecutedTimes::outcome(double step) const {
  FaultOutcome out = out_;
  double spent = undone_time_;
  for (const Step& s : lasting_) spent += s.time;
  out.useful = static_cast<double>(lasting_.size()) * step;
  const double undone = static_cast<double>(undone_) * step;
  out.lost += undone;
  out.slower = spent - out.useful - undone;
  return out;
}

}  // namespace hyperrun

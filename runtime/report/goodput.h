// The share of a run's time in which it trained, and where the other time went.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hyperrun {

// Parts of a time, in seconds. They have the meaning of the columns of `hyperrun sim --faults`.
struct GoodputParts {
  double useful = 0, slower = 0, saving = 0, lost = 0, noticing = 0, waiting = 0, starting = 0, reading = 0;
  double faults = 0, changes = 0;  // counts: faults of the run, and returns to more devices

  double seconds() const { return useful + slower + saving + lost + noticing + waiting + starting + reading; }
  double goodput() const { return seconds() > 0 ? useful / seconds() : 0; }
};

struct Goodput {
  GoodputParts executed;
  std::int64_t steps = 0, saves = 0;     // steps that last; saves and copies that steps waited for
  double step = 0;                       // seconds of a step on all devices
  std::optional<GoodputParts> foretold;  // of the same faults within the same time
};

std::string to_text(const Goodput& goodput);  // a line or two

}  // namespace hyperrun

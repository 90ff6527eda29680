// Which failures a run starts again after, and how often.
#pragma once

#include <cstdint>

#include "runtime/control/controller.h"

namespace hyperrun {

class Restarts {
 public:
  // `limit`: starts in a row without a new checkpoint between them. 0: every failure ends the run.
  // `skips`: a divergence is a failure that a run starts again after.
  explicit Restarts(std::int32_t limit, bool skips = false) : limit_(limit), skips_(skips) {}

  std::int32_t limit() const { return limit_; }
  std::int32_t in_a_row() const { return in_a_row_; }

  // Whether an error of this code can be followed by another start. The outcome decides it. `diverged`: it
  // tells of a step's results.
  bool possible(Code code, bool diverged = false) const;

  // Decides whether the run starts again, and counts the start. `saved_step` is the step of the last
  // checkpoint of the run, 0 if there is none.
  bool again(const control::Outcome& outcome, std::int64_t saved_step, bool diverged = false);

 private:
  std::int32_t limit_, in_a_row_ = 0;
  bool skips_;
  std::int64_t saved_step_ = 0;  // of the last checkpoint when the run last started
};

}  // namespace hyperrun

// Which failures a run starts again after, and how often.
#pragma once

#include <cstdint>

#include "runtime/control/controller.h"

namespace hyperrun {

class Restarts {
 public:
  // `limit`: starts in a row without a new checkpoint between them. 0: every failure ends the run.
  explicit Restarts(std::int32_t limit) : limit_(limit) {}

  std::int32_t limit() const { return limit_; }
  std::int32_t in_a_row() const { return in_a_row_; }

  // Whether an error of this code can be followed by another start. The outcome decides it.
  bool possible(Code code) const;

  // Decides whether the run starts again, and counts the start. `saved_step` is the step of the last
  // checkpoint of the run, 0 if there is none.
  bool again(const control::Outcome& outcome, std::int64_t saved_step);

 private:
  std::int32_t limit_, in_a_row_ = 0;
  std::int64_t saved_step_ = 0;  // of the last checkpoint when the run last started
};

}  // namespace hyperrun

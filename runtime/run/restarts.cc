#include "runtime/run/restarts.h"

namespace hyperrun {

bool Restarts::possible(Code code) const {
  return limit_ > 0 && (code == Code::kDeviceLost || code == Code::kDeviceHung || code == Code::kMpi);
}

bool Restarts::again(const control::Outcome& outcome, std::int64_t saved_step) {
  if (outcome.signal != 0 || !outcome.error || !possible(outcome.error->code())) return false;
  // An mpirun that never started a rank fails for a reason that another start does not remove.
  if (outcome.error->code() == Code::kMpi && !outcome.any_started) return false;
  if (saved_step > saved_step_) in_a_row_ = 0;
  saved_step_ = saved_step;
  return ++in_a_row_ <= limit_;
}

}  // namespace hyperrun

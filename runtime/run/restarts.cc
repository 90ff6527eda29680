#include "runtime/run/restarts.h"

namespace hyperrun {

bool Restarts::possible(Code code, bool diverged) const {
  if (limit_ == 0) return false;
  if (code == Code::kNotFinite) return skips_ && diverged;
  return code == Code::kDeviceLost || code == Code::kDeviceHung || code == Code::kMpi ||
         code == Code::kCorrupt;
}

bool Restarts::again(const control::Outcome& outcome, std::int64_t saved_step, bool diverged) {
  if (outcome.signal != 0 || !outcome.error || !possible(outcome.error->code(), diverged)) return false;
  // An mpirun that never started a rank fails for a reason that another start does not remove.
  if (outcome.error->code() == Code::kMpi && !outcome.any_started) return false;
  if (saved_step > saved_step_) in_a_row_ = 0;
  saved_step_ = saved_step;
  return ++in_a_row_ <= limit_;
}

}  // namespace hyperrun

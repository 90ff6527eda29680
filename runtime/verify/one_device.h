// The job as one device trains it, beside which its layouts are put.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

// Nothing is split, computed again or moved: the value that is kept is what it has to be.
Job for_one_device(Job job);

// For so many steps; long enough that no sequence comes twice, within reason. Always the same.
std::vector<std::int32_t> made_up_text(const Job& job, std::int64_t steps);

struct StepLoss {
  double loss = 0;
  double allowed = 0;  // of a layout's difference, relative
};
// The losses of that text, from weights that are drawn as a run of the job draws them. What may differ is
// measured as in verify.h: by weights that are changed in their last bit, the most in any of the steps, as a
// single number may change by next to nothing by chance. In bfloat16 it is in any case that format's last bit
// over the root of the tokens, whose mean the loss is.
std::vector<StepLoss> losses_of_one_device(const Job& job, std::int64_t steps);

}  // namespace hyperrun

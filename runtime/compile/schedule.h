#pragma once

#include <cstdint>

#include "runtime/ir/job.h"

namespace hyperrun {

// Learning rate of `step` (from 0): linear warm-up to lr, then a cosine down to min_lr at the last step
// (Loshchilov, Hutter 2017, without restarts).
double learning_rate(const TrainingSpec& training, std::int64_t step);

}  // namespace hyperrun

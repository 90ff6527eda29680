#pragma once

#include <cstdint>

#include "runtime/ir/job.h"

namespace hyperrun {

// The learning rate of `step`, from 0: linear warm-up to lr, then a cosine that reaches min_lr in the step
// after the last (Loshchilov, Hutter 2017, without restarts).
double learning_rate(const TrainingSpec& training, std::int64_t step);

}  // namespace hyperrun

// The job on one device, with which its layouts are compared.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

// The job without splits, recomputation and transfers; its values are the reference.
Job for_one_device(Job job);

// Made-up tokens for `steps` steps, enough that no sequence comes twice, within reason. Always the same.
std::vector<std::int32_t> made_up_text(const Job& job, std::int64_t steps);

struct StepLoss {
  double loss = 0;
  double allowed = 0;  // largest relative difference of a layout
};
// The losses on that text, from the initial weights of a run of the job. The allowed difference is measured
// as in verify.h, with weights whose last bit is changed. It is the largest of all steps, because a single
// number may change by almost nothing by chance. In bfloat16 it is at least that format's last bit over the
// root of the number of tokens, because the loss is their mean.
std::vector<StepLoss> losses_of_one_device(const Job& job, std::int64_t steps);

}  // namespace hyperrun

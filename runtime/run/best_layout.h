// The layout under which a run goes on when it has fewer devices than its job asks for.
#pragma once

#include "runtime/ir/job.h"

namespace hyperrun {

// The job with the fastest layout of `devices` devices, or of the most of them that any layout can use.
// Model, batch, seed and training stay. Throws kBadLayout if not even one device can run it.
Job best_layout(const Job& job, std::int32_t devices);

}  // namespace hyperrun

#include "runtime/compile/pipeline_idle.h"

#include <algorithm>

#include "runtime/compile/pipeline_schedule.h"

namespace hyperrun {

double idle_share(const PipelineSpec& pipeline, int devices, int micro_batches) {
  std::int64_t busy = 0, end = 0;
  for (const std::vector<TimedSlot>& device : pipeline_schedule(pipeline, devices, micro_batches))
    for (const TimedSlot& slot : device) busy += slot.end - slot.begin, end = std::max(end, slot.end);
  return 1 - static_cast<double>(busy) / static_cast<double>(end * devices);
}

}  // namespace hyperrun

#pragma once

#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

// A pipeline with `chunks` stages on each of `devices`, in turn: stage v is on device v mod devices. Layers
// are spread evenly; where they do not divide, the first stages have one more.
inline std::vector<PipelineSpec::Stage> even_stages(int devices, int chunks, int layers) {
  std::vector<PipelineSpec::Stage> stages;
  const int count = devices * chunks;
  stages.reserve(static_cast<std::size_t>(count));
  for (int v = 0; v < count; ++v)
    stages.push_back({v % devices, layers / count + (v < layers % count ? 1 : 0)});
  return stages;
}

}  // namespace hyperrun

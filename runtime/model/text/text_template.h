// Post-processors of tokenizer.json, as far as they concern one text: the special tokens around it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/model/text/pipeline_step.h"

namespace hyperrun {

struct TextTemplate {
  std::vector<std::int32_t> before, after;
};

// Reads a post-processor; refuses what is not supported at its place.
TextTemplate read_post_processor(const PipelineStep& step);

}  // namespace hyperrun

// Reads the vocabulary of a model of tokenizer.json.
#pragma once

#include "runtime/model/text/pipeline_step.h"
#include "runtime/model/text/vocabulary.h"

namespace hyperrun {

// Reads {"token": id, ...}; kBadCheckpoint at the field "vocab".
Vocabulary read_vocabulary(const PipelineStep& step);

}  // namespace hyperrun

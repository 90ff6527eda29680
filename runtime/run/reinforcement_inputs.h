// What a job that learns from rewards reads before it begins.
#pragma once

#include "runtime/model/text/tokenizer.h"
#include "runtime/reinforce/tasks.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

struct ReinforcementInputs {
  Tokenizer tokenizer;
  TaskSplit tasks;
};

// The job's paths are known to be there. Throws kMissingField where nothing says how tasks become tokens,
// kBadValue, kBadCorpus.
ReinforcementInputs read_reinforcement_inputs(const LoadedJob& loaded);

}  // namespace hyperrun

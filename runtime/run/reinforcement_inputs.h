// The inputs of a job that learns from rewards: its tasks, and the tokenizer of their texts.
#pragma once

#include "runtime/model/text/tokenizer.h"
#include "runtime/reinforce/tasks.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

struct ReinforcementInputs {
  Tokenizer tokenizer;
  TaskSplit tasks;
};

// The job's files must exist (check_inputs). Throws kMissingField if there is no tokenizer, kBadValue or
// kBadCorpus.
ReinforcementInputs read_reinforcement_inputs(const LoadedJob& loaded);

}  // namespace hyperrun

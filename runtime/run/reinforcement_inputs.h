// The inputs of a job that learns from rewards: its tasks, and the tokenizer of their texts.
#pragma once

#include <optional>

#include "runtime/ir/program.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/reinforce/tasks.h"
#include "runtime/run/programs_state.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

struct ReinforcementInputs {
  Tokenizer tokenizer;
  TaskSplit tasks;
};

// The job's files must exist (check_inputs). Throws kMissingField if there is no tokenizer, kBadValue or
// kBadCorpus.
ReinforcementInputs read_reinforcement_inputs(const LoadedJob& loaded);

// Checks that the job can begin from job.run.resume, and returns the state if the checkpoint is of a job that
// learns from rewards (programs_state.h). Otherwise it has weights to begin with. `reference` is the plan of
// the program that scores, null if there is none. Throws kBadCheckpoint, kMissingFile or kBadValue.
std::optional<ProgramsState> check_learning_start(const Job& job, const Plan& learner, const Plan* reference,
                                                  const ReinforcementInputs& inputs);

}  // namespace hyperrun

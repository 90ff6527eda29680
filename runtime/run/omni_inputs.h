// The inputs of a run of programs with encoders: its samples, and the tokenizer of their texts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/compose/omni.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/omni/examples.h"
#include "runtime/omni/step_tasks.h"
#include "runtime/run/programs_state.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

struct OmniInputs {
  std::vector<std::string> encoders;  // names of the programs that encode, in the job's order
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<OmniSplit> train, held_back;

  // The largest number of items in a micro-batch, by encoder.
  std::vector<std::int64_t> most_items() const;
};

// Throws kMissingFile, kBadCorpus, kBadTokenizer, kBadValue, and the errors of the manifest's reader.
OmniInputs read_omni_inputs(const LoadedJob& loaded);

// Checks that the job can go on from job.run.resume, and returns the state there (programs_state.h). Throws
// kBadCheckpoint, kMissingFile or kBadValue.
std::optional<ProgramsState> check_omni_start(const Job& job, const OmniPlan& plan);

// The number of passes by micro-batch and encoder. `items` are by micro-batch and encoder; `items_of_pass`,
// by encoder, is the capacity of one pass.
OmniPasses passes_of(const std::vector<std::vector<std::int64_t>>& items,
                     const std::vector<std::int64_t>& items_of_pass);

}  // namespace hyperrun

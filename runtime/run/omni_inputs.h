// What a run of programs with encoders reads before anything starts: samples, and how texts become tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/model/text/tokenizer.h"
#include "runtime/omni/examples.h"
#include "runtime/omni/step_tasks.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

struct OmniInputs {
  std::vector<std::string> encoders;  // names of the programs that encode, in the job's order
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<OmniSplit> train, held_back;

  // Of each encoder, of a micro-batch: items, at most.
  std::vector<std::int64_t> most_items() const;
};

// Throws kMissingFile, kBadCorpus and what the manifest's reader throws, kBadTokenizer, kBadValue.
OmniInputs read_omni_inputs(const LoadedJob& loaded);

// Of items by micro-batch and encoder: passes of so many items.
OmniPasses passes_of(const std::vector<std::vector<std::int64_t>>& items,
                     const std::vector<std::int64_t>& of_a_pass);

}  // namespace hyperrun

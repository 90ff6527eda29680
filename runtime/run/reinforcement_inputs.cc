#include "runtime/run/reinforcement_inputs.h"

#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/run/rollout.h"
#include "runtime/run/text_data.h"

namespace hyperrun {
namespace {

Tokenizer tokenizer_of(const LoadedJob& loaded) {
  std::optional<Tokenizer> found = find_tokenizer(loaded.job);
  if (!found)
    throw Error(Code::kMissingField, "nothing says how tasks become tokens")
        .at(loaded.source.place("data"))
        .legal("a tokenizer.json, or a checkpoint in run.resume that has one")
        .fix("add tokenizer: ... to data, or resume: ... to run");
  check_vocab(loaded.job, *found);
  return *std::move(found);
}

}  // namespace

ReinforcementInputs read_reinforcement_inputs(const LoadedJob& loaded) {
  const Job& job = loaded.job;
  ReinforcementInputs inputs{tokenizer_of(loaded), split_tasks(read_tasks(job.data.tasks),
                                                               job.reinforcement.held_back, job.data.tasks)};
  for (const auto* tasks : {&inputs.tasks.train, &inputs.tasks.held_back})
    check_lengths(*tasks, inputs.tokenizer, job.reinforcement.tokens, job.model.sequence, job.data.tasks);
  return inputs;
}

}  // namespace hyperrun

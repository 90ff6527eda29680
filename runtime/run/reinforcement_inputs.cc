#include "runtime/run/reinforcement_inputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/device/state_files.h"
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

namespace {

// Throws unless the prompts of a batch are those that its step has with these tasks.
void check_prompts(const Job& job, const QueuedBatch& queued, const ReinforcementInputs& inputs) {
  const Rollout batch = rollout_of_step(job, inputs.tasks.train, queued.step, inputs.tokenizer);
  const auto prompt = [](const Completion& c) { return c.prompt; };
  if (std::ranges::equal(batch.completions(), queued.completions, {}, prompt, prompt)) return;
  throw Error(Code::kBadCheckpoint,
              fmt::format("the prompts of step {} are others than those of data.tasks", queued.step + 1))
      .at((std::filesystem::path(job.run.resume) / kProgramsStateFile).string())
      .legal("the tasks, the tokenizer and reinforcement.held_back of the run of the checkpoint")
      .fix("give the job that run's tasks");
}

}  // namespace

std::optional<ProgramsState> check_learning_start(const Job& job, const Plan& learner, const Plan* reference,
                                                  const ReinforcementInputs& inputs) {
  const std::filesystem::path checkpoint = job.run.resume;
  std::vector<std::string> parts;
  if (reference != nullptr) parts.emplace_back(kReferencePart);
  std::optional<ProgramsState> state =
      state_to_resume(job, kOfRewards, parts, !inputs.tasks.held_back.empty());
  if (!state) {
    check_weights(learner, checkpoint);
    return state;
  }
  check_state(learner, checkpoint);
  if (reference != nullptr) check_weights(*reference, checkpoint / kReferencePart);
  for (const QueuedBatch& queued : state->queued) check_prompts(job, queued, inputs);
  return state;
}

}  // namespace hyperrun

// A batch of completions: the prompts for the program that generates, and the tokens that it has returned.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/inference/batcher.h"
#include "runtime/ir/job.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/reinforce/experience.h"
#include "runtime/reinforce/tasks.h"

namespace hyperrun {

class Rollout {
 public:
  // Asks for `samples` completions of each task. Their ids count from `first_id` on; the random draws depend
  // on the id.
  Rollout(std::span<const Task> tasks, std::int32_t samples, std::int32_t first_id,
          const Tokenizer& tokenizer);

  std::vector<Prompt> prompts(std::int64_t tokens) const;
  bool has(std::int32_t id) const;      // whether the completion with this id is in the batch
  void add(const SampledToken& grown);  // adds a token to its completion; requires has(grown.id)
  // Adds all tokens of all completions, as an earlier run has drawn them.
  void add_all(std::span<const Completion> drawn);
  bool done() const { return open_ == 0; }

  // The reward of each completion by the rule. Requires done().
  std::vector<double> rewards(std::string_view rule, const Tokenizer& tokenizer) const;
  const std::vector<Completion>& completions() const { return completions_; }
  std::int64_t tokens() const;  // number of tokens of all completions, without prompts

 private:
  std::vector<Task> tasks_;  // by completion
  std::vector<Completion> completions_;
  std::int32_t first_id_;
  std::size_t open_;
};

// The batch of a step, without a token yet: its prompts and its ids depend on the job's seed and the step
// alone.
Rollout rollout_of_step(const Job& job, std::span<const Task> tasks, std::int64_t step,
                        const Tokenizer& tokenizer);

// The first id of an evaluation's completions. The ids differ from those of training, and so do the draws.
inline constexpr std::int32_t kEvaluationIds = 1 << 30;

// The tokens that end a completion: the end of a text, and the end of a line if that is one token.
std::vector<std::int32_t> ends_of_completions(const Tokenizer& tokenizer);

// Throws kBadCorpus if a task's prompt has no token, or if `tokens` more do not fit into `sequence`. `place`
// is the place of the error.
void check_lengths(std::span<const Task> tasks, const Tokenizer& tokenizer, std::int64_t tokens,
                   std::int64_t sequence, const std::string& place);

}  // namespace hyperrun

// A batch of completions: what is asked of the program that generates, and what has come of it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/inference/batcher.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/reinforce/experience.h"
#include "runtime/reinforce/tasks.h"

namespace hyperrun {

class Rollout {
 public:
  // `samples` completions of each task, numbered from `first_id` on: what is drawn depends on the number.
  Rollout(std::span<const Task> tasks, std::int32_t samples, std::int32_t first_id,
          const Tokenizer& tokenizer);

  std::vector<Prompt> prompts(std::int64_t tokens) const;
  bool has(std::int32_t id) const;      // whether a completion of this number is among them
  void add(const SampledToken& grown);  // of one that is
  bool done() const { return open_ == 0; }

  // When done: each completion's reward by the rule.
  std::vector<double> rewards(std::string_view rule, const Tokenizer& tokenizer) const;
  const std::vector<Completion>& completions() const { return completions_; }
  std::int64_t tokens() const;  // of the completions

 private:
  std::vector<Task> tasks_;  // of each completion
  std::vector<Completion> completions_;
  std::int32_t first_id_;
  std::size_t open_;
};

// Tokens with which a completion ends: those of a text's end and of a line's.
std::vector<std::int32_t> ends_of_completions(const Tokenizer& tokenizer);

// Throws kBadCorpus for a task whose prompt has no token, or leaves no room for `tokens` in `sequence`.
void check_lengths(std::span<const Task> tasks, const Tokenizer& tokenizer, std::int64_t tokens,
                   std::int64_t sequence, const std::string& place);

}  // namespace hyperrun

#include "runtime/run/rollout.h"

#include <fmt/core.h>

#include "runtime/base/error.h"
#include "runtime/reinforce/reward.h"
#include "runtime/run/text_data.h"

namespace hyperrun {

Rollout::Rollout(std::span<const Task> tasks, std::int32_t samples, std::int32_t first_id,
                 const Tokenizer& tokenizer)
    : first_id_(first_id), open_(tasks.size() * static_cast<std::size_t>(samples)) {
  for (const Task& task : tasks)
    for (std::int32_t s = 0; s < samples; ++s) {
      tasks_.push_back(task);
      completions_.push_back({encode_from_begin(tokenizer, task.prompt), {}, {}});
    }
}

std::vector<Prompt> Rollout::prompts(std::int64_t tokens) const {
  std::vector<Prompt> list;
  for (std::size_t i = 0; i < completions_.size(); ++i)
    list.push_back({first_id_ + static_cast<std::int32_t>(i), completions_[i].prompt, tokens});
  return list;
}

bool Rollout::has(std::int32_t id) const {
  return id >= first_id_ && id - first_id_ < std::ssize(completions_);
}

void Rollout::add(const SampledToken& grown) {
  Completion& c = completions_.at(static_cast<std::size_t>(grown.id - first_id_));
  c.tokens.push_back(grown.token);
  c.logp.push_back(grown.logp);
  if (grown.last) --open_;
}

void Rollout::add_all(std::span<const Completion> drawn) {
  HR_CHECK(drawn.size() == completions_.size() && open_ == drawn.size(), "a batch as it was drawn");
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    completions_[i].tokens = drawn[i].tokens;
    completions_[i].logp = drawn[i].logp;
  }
  open_ = 0;
}

std::vector<double> Rollout::rewards(std::string_view rule, const Tokenizer& tokenizer) const {
  HR_CHECK(done(), "completions are judged when they are whole");
  const std::string end = tokenizer.token(tokenizer.end_of_text());
  std::vector<double> list;
  for (std::size_t i = 0; i < completions_.size(); ++i) {
    std::string text = tokenizer.decode(completions_[i].tokens);
    if (text.ends_with(end)) text.resize(text.size() - end.size());
    list.push_back(reward(rule, tasks_[i], text));
  }
  return list;
}

std::int64_t Rollout::tokens() const {
  std::int64_t n = 0;
  for (const Completion& c : completions_) n += std::ssize(c.tokens);
  return n;
}

Rollout rollout_of_step(const Job& job, std::span<const Task> tasks, std::int64_t step,
                        const Tokenizer& tokenizer) {
  const std::int32_t samples = job.reinforcement.samples, batch = job.training.batch;
  std::vector<Task> of_step;
  for (const std::size_t t :
       tasks_of_step(tasks.size(), static_cast<std::size_t>(batch / samples), step, job.run.seed))
    of_step.push_back(tasks[t]);
  return {of_step, samples, static_cast<std::int32_t>(step * batch % kEvaluationIds), tokenizer};
}

std::vector<std::int32_t> ends_of_completions(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ends{tokenizer.end_of_text()};
  if (const std::vector<std::int32_t> line = tokenizer.encode("\n"); line.size() == 1)
    ends.push_back(line[0]);
  return ends;
}

void check_lengths(std::span<const Task> tasks, const Tokenizer& tokenizer, std::int64_t tokens,
                   std::int64_t sequence, const std::string& place) {
  for (const Task& task : tasks) {
    const std::int64_t prompt = std::ssize(encode_from_begin(tokenizer, task.prompt));
    if (prompt > 0 && prompt + tokens <= sequence) continue;
    throw Error(Code::kBadCorpus, fmt::format("the prompt \"{}\" has {} tokens", task.prompt, prompt))
        .at(place)
        .legal(fmt::format("1 to {}, so that {} more fit into model.sequence", sequence - tokens, tokens))
        .fix("shorten the prompt or reinforcement.tokens, or make the sequence longer");
  }
}

}  // namespace hyperrun

#include "runtime/generate/completions.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/base/utf8.h"
#include "runtime/report/generation.h"

namespace hyperrun {

Completions::Completions(const Tokenizer& tokenizer, std::vector<std::int32_t> ends,
                         std::vector<std::string> prompts, bool json, GeneratedFile* file)
    : tokenizer_(tokenizer),
      ends_(std::move(ends)),
      prompts_(std::move(prompts)),
      json_(json),
      file_(file),
      tokens_(prompts_.size()) {}

void Completions::add(const SampledToken& grown) {
  const auto prompt = static_cast<std::size_t>(grown.id);
  tokens_[prompt].push_back(grown.token);
  if (!grown.last) return;
  ended_.insert(prompt);
  if (file_ != nullptr) return file_->add(result(prompt));
  for (; ended_.contains(next_); ++next_) print(next_);
}

bool Completions::has(std::size_t prompt) const {
  return ended_.contains(prompt) || (file_ != nullptr && file_->has(static_cast<std::int64_t>(prompt)));
}

void Completions::begin_again() {
  for (std::size_t prompt = 0; prompt < tokens_.size(); ++prompt)
    if (!has(prompt)) tokens_[prompt].clear();
}

GeneratedText Completions::result(std::size_t prompt) const {
  std::vector<std::int32_t> text = tokens_[prompt];
  if (!text.empty() && std::ranges::count(ends_, text.back()) > 0) text.pop_back();
  return {static_cast<std::int64_t>(prompt), valid_utf8(prompts_[prompt]),
          valid_utf8(tokenizer_.decode(text)), tokens_[prompt]};
}

void Completions::print(std::size_t prompt) const {
  const GeneratedText r = result(prompt);
  if (json_)
    std::printf("%s\n", to_json_line(r).c_str());
  else
    std::printf("%s%s%s\n", prompts_.size() > 1 && prompt > 0 ? "\n" : "", r.prompt.c_str(), r.text.c_str());
  std::fflush(stdout);
}

}  // namespace hyperrun

#include "runtime/model/text/added_tokens.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/base/utf8.h"
#include "runtime/model/text/char_names.h"
#include "runtime/model/text/unicode_form.h"

namespace hyperrun {
namespace {

AddedToken read_token(const PipelineStep& step) {
  step.allow({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  const JsonFields& fields = step.fields();
  const std::int64_t id = fields.integer("id");
  AddedToken token{.content = step.text("content"),
                   .single_word = fields.boolean("single_word", false),
                   .lstrip = fields.boolean("lstrip", false),
                   .rstrip = fields.boolean("rstrip", false),
                   .normalized = fields.boolean("normalized", false),
                   .special = fields.boolean("special", false)};
  if (token.content.empty()) throw fields.error("content", "must not be empty");
  if (id < 0 || id >= Vocabulary::kMostTokens)
    throw fields.error("id", fmt::format("{} is no id", id))
        .legal(fmt::format("0 to {}", Vocabulary::kMostTokens - 1));
  token.id = static_cast<std::int32_t>(id);
  return token;
}

}  // namespace

AddedTokens::AddedTokens(const PipelineStep& root, const Normalizer* normalizer, Vocabulary& vocabulary)
    : word_(Regex::oniguruma(fmt::format("[{}]", rust_word_characters()), root.place())) {
  if (root.fields().find("added_tokens") == nullptr) return;
  for (const PipelineStep& step : root.steps("added_tokens")) read(step, vocabulary);
  // Special tokens go first, because of two with the same content the first counts.
  std::vector<std::int32_t> order;
  for (std::int32_t i = 0; i < std::ssize(list_); ++i) order.push_back(i);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::int32_t i) { return list_[static_cast<std::size_t>(i)].special; });
  for (const std::int32_t i : order) {
    const AddedToken& token = list_[static_cast<std::size_t>(i)];
    std::string content = token.content;
    if (token.normalized && normalizer != nullptr) normalizer->apply(content);
    if (!content.empty()) (token.normalized ? normalized_ : raw_).add(content, i);
  }
}

void AddedTokens::read(const PipelineStep& step, Vocabulary& vocabulary) {
  AddedToken token = read_token(step);
  const std::int32_t known = vocabulary.id_of(token.content);
  if (known >= 0 && known != token.id)
    throw step.fields()
        .error("id", fmt::format("\"{}\" has the id {} in the vocabulary", token.content, known))
        .legal(fmt::format("{}", known));
  if (!vocabulary.add(token.content, token.id))
    throw step.fields().error(
        "id", fmt::format("{} is the id of \"{}\" in the vocabulary", token.id, vocabulary.token(token.id)));
  list_.push_back(std::move(token));
}

// True where no character of a word stands right before or behind.
bool AddedTokens::is_alone(std::string_view text, TextRange found) const {
  const auto is_word = [&](std::size_t at) {
    return word_.search(text.substr(at, char_at(text, at).bytes), 0).has_value();
  };
  std::size_t before = found.begin;
  while (before > 0 && (before == found.begin || (static_cast<unsigned char>(text[before]) & 0xC0u) == 0x80u))
    --before;
  if (found.begin > 0 && is_word(before)) return false;
  return found.end == text.size() || !is_word(found.end);
}

void AddedTokens::split(const CharTrie& trie, std::string_view text, Sink out) const {
  std::size_t done = 0, from = 0;
  while (const std::optional<CharTrie::Found> found = trie.find(text, from)) {
    const AddedToken& token = list_[static_cast<std::size_t>(found->value)];
    from = found->range.end;
    if (token.single_word && !is_alone(text, found->range)) continue;
    std::size_t begin = found->range.begin, end = found->range.end;
    if (token.lstrip) begin = std::max(done, begin - blank_bytes_at_end(text.substr(0, begin)));
    if (token.rstrip) end += blank_bytes_at_front(text.substr(end));
    if (done < begin) out(text.substr(done, begin - done), -1);
    // White space that the token before has taken in may be all of this one.
    if (begin >= end) continue;
    out(text.substr(begin, end - begin), token.id);
    done = end;
  }
  if (done < text.size()) out(text.substr(done), -1);
}

}  // namespace hyperrun

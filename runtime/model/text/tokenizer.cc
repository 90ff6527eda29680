#include "runtime/model/text/tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "runtime/base/joined.h"
#include "runtime/base/utf8.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/text/added_tokens.h"
#include "runtime/model/text/decoder.h"
#include "runtime/model/text/lossy_utf8.h"
#include "runtime/model/text/normalizer.h"
#include "runtime/model/text/pre_tokenizer.h"
#include "runtime/model/text/text_template.h"
#include "runtime/model/text/token_model.h"
#include "runtime/model/text/word_cache.h"

namespace hyperrun {

using nlohmann::json;

namespace {

// Tokens that end a document, by the name that their models' makers gave them. The first that a file has
// counts.
constexpr std::array<std::string_view, 7> kEndsOfText{
    kEndOfText, "<|end_of_text|>", "</s>", "<｜end▁of▁sentence｜>", "<eos>", "<EOS_TOKEN>", "[EOS]"};

constexpr std::string_view kUnknown = "\uFFFD";

// A step of the file's root, if it is there.
std::optional<PipelineStep> step_at(const PipelineStep& root, const char* field) {
  const json* step = root.fields().find(field);
  if (step == nullptr) return {};
  return PipelineStep(*step, root.place(field));
}

std::unique_ptr<Normalizer> normalizer_of(const PipelineStep& root) {
  const auto step = step_at(root, "normalizer");
  return step ? read_normalizer(*step) : nullptr;
}

}  // namespace

struct Tokenizer::Parts {
  Parts(std::string text, const PipelineStep& root);

  void find_ends(const PipelineStep& root);

  std::string document;
  ReadModel model;
  Vocabulary all;  // with the added tokens
  std::unique_ptr<Normalizer> normalizer;
  AddedTokens added;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<TokenDecoder> decoder;
  std::int32_t end_of_text = -1, begin_of_text = -1;
};

Tokenizer::Parts::Parts(std::string text, const PipelineStep& root)
    : document(std::move(text)),
      model(read_model({root.fields().required("model"), root.place("model")})),
      all(*model.vocabulary),
      normalizer(normalizer_of(root)),
      added(root, normalizer.get(), all) {
  if (const auto step = step_at(root, "pre_tokenizer")) pre_tokenizer = read_pre_tokenizer(*step);
  if (const auto step = step_at(root, "decoder")) decoder = read_decoder(*step);
  find_ends(root);
}

void Tokenizer::Parts::find_ends(const PipelineStep& root) {
  TextTemplate around;
  if (const auto step = step_at(root, "post_processor")) around = read_post_processor(*step);
  for (const auto* ids : {&around.before, &around.after})
    for (const std::int32_t id : *ids)
      if (!all.has(id))
        throw root.fields().error("post_processor", fmt::format("{} is the id of no token", id));
  root.refuse_if(around.before.size() > 1, "post_processor", "one special token before a text, or none");
  if (!around.before.empty()) begin_of_text = around.before[0];
  for (const std::string_view name : kEndsOfText)
    if (const auto found = std::ranges::find(added.list(), name, &AddedToken::content);
        found != added.list().end()) {
      end_of_text = found->id;
      return;
    }
  if (around.after.empty())
    throw root.fields().error("added_tokens", "no token ends a document").legal(joined(kEndsOfText));
  end_of_text = around.after.back();
}

namespace {

// The steps of one encode().
class Encoding {
 public:
  Encoding(const TokenModel& model, const Normalizer* normalizer, const PreTokenizer* pre_tokenizer,
           const AddedTokens& added)
      : model_(model), normalizer_(normalizer), pre_tokenizer_(pre_tokenizer), added_(added) {}

  std::vector<std::int32_t> run(std::string_view text) {
    added_.split_raw(text, [&](std::string_view part, std::int32_t id) {
      if (id >= 0)
        ids_.push_back(id);
      else
        add_raw(part, part.data() == text.data());
    });
    return std::move(ids_);
  }

 private:
  void add_raw(std::string_view raw, bool at_start) {
    std::string normalized;
    if (normalizer_ != nullptr) {
      normalized = raw;
      normalizer_->apply(normalized);
      raw = normalized;
    }
    added_.split_normalized(raw, [&](std::string_view part, std::int32_t id) {
      if (id >= 0)
        ids_.push_back(id);
      else
        add_words({part, at_start && part.data() == raw.data()});
    });
  }

  void add_words(TextPiece piece) {
    if (pre_tokenizer_ == nullptr) return add_word(piece.text);
    pre_tokenizer_->cut(piece, [&](TextPiece word) { add_word(word.text); });
  }

  void add_word(std::string_view word) {
    while (!word.empty()) {
      const std::size_t bytes = model_.first_part(word);
      cache_.append(word.substr(0, bytes), ids_,
                    [&](std::string_view part, std::vector<std::int32_t>& out) { model_.encode(part, out); });
      word.remove_prefix(bytes);
    }
  }

  const TokenModel& model_;
  const Normalizer* normalizer_;
  const PreTokenizer* pre_tokenizer_;
  const AddedTokens& added_;
  WordCache cache_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

Tokenizer::Tokenizer(std::string document, const std::string& place) {
  const json root = parse_json(document, place);
  const PipelineStep step(root, place);
  parts_ = std::make_shared<const Parts>(std::move(document), step);
}

std::int32_t Tokenizer::vocab_size() const { return parts_->all.size(); }
std::int32_t Tokenizer::end_of_text() const { return parts_->end_of_text; }
std::int32_t Tokenizer::begin_of_text() const { return parts_->begin_of_text; }
const std::string& Tokenizer::token(std::int32_t id) const { return parts_->all.token(id); }
const std::string& Tokenizer::document() const { return parts_->document; }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::string valid;
  if (!is_utf8(text)) text = valid = lossy_utf8(text);
  return Encoding(*parts_->model.model, parts_->normalizer.get(), parts_->pre_tokenizer.get(), parts_->added)
      .run(text);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  if (!ids.empty() && ids.front() == begin_of_text() && begin_of_text() >= 0) ids = ids.subspan(1);
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids)
    tokens.emplace_back(parts_->all.has(id) ? std::string_view(token(id)) : kUnknown);
  if (parts_->decoder == nullptr) return joined(tokens, " ");
  parts_->decoder->apply(tokens);
  return joined(tokens, "");
}

bool Tokenizer::operator==(const Tokenizer& o) const {
  return parts_ == o.parts_ || document() == o.document() ||
         json::parse(document()) == json::parse(o.document());
}

Tokenizer read_tokenizer(const std::filesystem::path& path) {
  return {read_file(path, Code::kBadCheckpoint), path.string()};
}

void write_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  write_file(path, tokenizer.document());
}

}  // namespace hyperrun

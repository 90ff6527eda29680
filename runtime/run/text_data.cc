#include "runtime/run/text_data.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/text/corpus.h"

namespace hyperrun {

namespace {

// Reads the job's own tokenizer. The reader's error names a bad checkpoint, but this file belongs to none.
Tokenizer own_tokenizer(const std::string& path) try { return read_tokenizer(path); } catch (const Error& e) {
  if (e.code() != Code::kBadCheckpoint) throw;
  throw Error(Code::kBadTokenizer, e.cause()).at(e.place()).legal(e.legal());
}

// The text between two documents: the end of one and the begin of the next.
std::string between_documents(const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) return std::string(kEndOfText);
  const std::int32_t begin = tokenizer->begin_of_text();
  return tokenizer->token(tokenizer->end_of_text()) + (begin < 0 ? "" : tokenizer->token(begin));
}

// Whether the saved tokenizer differs from the given one. One that cannot be read counts as different.
bool is_other_than(const std::filesystem::path& saved, const Tokenizer& tokenizer) try {
  return std::filesystem::exists(saved) && read_tokenizer(saved) != tokenizer;
} catch (const Error&) {
  return true;
}

// The config.json of the resumed weights. nullopt if there is none, or if they were trained with another
// tokenizer, so that their ids mean other tokens.
std::optional<HfConfig> resumed_config(const Job& job, const Tokenizer& tokenizer) {
  if (job.run.resume.empty()) return {};
  const std::filesystem::path directory = job.run.resume;
  if (!std::filesystem::exists(directory / "config.json") || !has_tokenizer_of(job, tokenizer)) return {};
  return read_config(directory);
}

}  // namespace

std::filesystem::path tokenizer_file(const Job& job) {
  if (!job.data.tokenizer.empty()) return job.data.tokenizer;
  const std::filesystem::path saved = std::filesystem::path(job.run.resume) / "tokenizer.json";
  return !job.run.resume.empty() && std::filesystem::exists(saved) ? saved : std::filesystem::path();
}

bool has_tokenizer_of(const Job& job, const Tokenizer& tokenizer) {
  return job.data.tokenizer.empty() ||
         !is_other_than(std::filesystem::path(job.run.resume) / "tokenizer.json", tokenizer);
}

std::optional<Tokenizer> find_tokenizer(const Job& job) {
  if (!job.data.tokenizer.empty()) return own_tokenizer(job.data.tokenizer);
  const std::filesystem::path saved = tokenizer_file(job);
  return saved.empty() ? std::nullopt : std::optional(read_tokenizer(saved));
}

std::vector<std::int32_t> encode_from_begin(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> tokens = tokenizer.encode(text);
  if (tokenizer.begin_of_text() >= 0) tokens.insert(tokens.begin(), tokenizer.begin_of_text());
  return tokens;
}

void require_text(const Job& job) {
  if (!job.training.policy.trains()) return;
  throw Error(Code::kBadValue, "a policy is trained on samples, which this command has none of")
      .at("training.policy")
      .legal("a job without it; \"hyperrun check\" and \"hyperrun sim\" take one with it")
      .fix("leave it out to train on the corpus");
}

void check_vocab(const Job& job, const Tokenizer& tokenizer) {
  if (tokenizer.vocab_size() <= job.model.vocab) return;
  throw Error(Code::kBadValue, fmt::format("the tokenizer has {} tokens, the model {}",
                                           tokenizer.vocab_size(), job.model.vocab))
      .at("model.vocab")
      .legal(fmt::format("{} or more", tokenizer.vocab_size()));
}

TextData prepare_text(const Job& job) {
  std::optional<Tokenizer> found = find_tokenizer(job);
  Corpus corpus = read_corpus(job.data.corpus, between_documents(found));
  Tokenizer tokenizer = found ? std::move(*found) : Tokenizer::train(corpus.text, job.model.vocab);
  check_vocab(job, tokenizer);
  std::vector<std::int32_t> tokens = encode_from_begin(tokenizer, corpus.text);
  require_sample(tokens, job.model.sequence, job.data.corpus);
  return {std::move(tokenizer), std::move(tokens), std::move(corpus.notes)};
}

std::string describe_corpus(const Job& job, const TextData& text) {
  std::string lines;
  for (const std::string& note : text.notes) lines += fmt::format("{}: {}\n", job.data.corpus, note);
  return lines;
}

std::vector<std::int32_t> encode_prompt(const Job& job, const Tokenizer& tokenizer) {
  const GenerateSpec& g = job.run.generate;
  if (g.tokens == 0) return {};
  std::vector<std::int32_t> tokens = encode_from_begin(tokenizer, g.prompt);
  if (tokens.empty()) tokens.push_back(tokenizer.end_of_text());
  const std::int32_t context = job.inference.context > 0 ? job.inference.context : job.model.sequence;
  const std::int64_t room = context - std::ssize(tokens);
  if (g.tokens <= room) return tokens;
  if (room <= 0)
    throw Error(Code::kBadValue,
                fmt::format("the prompt is {} tokens, a sequence is {}", tokens.size(), context))
        .at("run.generate.prompt")
        .legal("fewer tokens than a sequence")
        .fix("shorten the prompt or raise inference.context");
  throw Error(Code::kBadValue, fmt::format("the prompt is {} tokens of a sequence of {}, {} more do not fit",
                                           tokens.size(), context, g.tokens))
      .at("run.generate.tokens")
      .legal(fmt::format("0 to {}", room))
      .fix("generate fewer tokens or raise inference.context");
}

HfConfig checkpoint_config(const ModelSpec& model, const Tokenizer& tokenizer) {
  HfConfig config{model, DType::kF32, {{tokenizer.end_of_text()}}, {}};
  if (tokenizer.begin_of_text() >= 0) config.begin_of_text = tokenizer.begin_of_text();
  return config;
}

HfConfig checkpoint_config(const Job& job, const Tokenizer& tokenizer) {
  HfConfig config = checkpoint_config(job.model, tokenizer);
  if (const std::optional<HfConfig> resumed = resumed_config(job, tokenizer)) {
    config.ends_of_text = resumed->ends_of_text;
    config.begin_of_text = resumed->begin_of_text;
  }
  return config;
}

std::vector<std::int32_t> ends_of_text(const Job& job, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ends = checkpoint_config(job, tokenizer).ends_of_text.tokens;
  ends.push_back(tokenizer.end_of_text());
  return ends;
}

}  // namespace hyperrun

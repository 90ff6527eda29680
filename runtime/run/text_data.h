// The text of a job as tokens. The controller makes it once, before the devices start.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

struct TextData {
  Tokenizer tokenizer;
  std::vector<std::int32_t> tokens;  // the whole corpus
  std::vector<std::string> notes;    // lines to tell about the corpus
};

// The file of the job's own tokenizer, else of that of the resumed weights; empty if there is neither.
std::filesystem::path tokenizer_file(const Job& job);

// Whether the weights that the job resumes were trained with this tokenizer, as far as their folder tells.
bool has_tokenizer_of(const Job& job, const Tokenizer& tokenizer);

// The job's own tokenizer, else that of the resumed weights, else nullopt.
std::optional<Tokenizer> find_tokenizer(const Job& job);

// Reads the corpus, and reads or trains the tokenizer. Throws kMissingFile, kBadCorpus, or kBadValue if the
// tokenizer has more tokens than the model.
TextData prepare_text(const Job& job);

// A line for each note about the corpus; empty if there is none.
std::string describe_corpus(const Job& job, const TextData& text);

// Throws kBadValue for a job that trains a policy. A policy trains on samples from another program, not on
// text.
void require_text(const Job& job);

// Throws kBadValue if the tokenizer has more tokens than the model.
void check_vocab(const Job& job, const Tokenizer& tokenizer);

// The tokens of a text, after the token for the begin of a text if the tokenizer has one.
std::vector<std::int32_t> encode_from_begin(const Tokenizer& tokenizer, std::string_view text);

// The tokens of the job's prompt; empty if the job generates nothing. Throws kBadValue if prompt and
// generated text are longer than a sequence.
std::vector<std::int32_t> encode_prompt(const Job& job, const Tokenizer& tokenizer);

// The config.json of a checkpoint of the model.
HfConfig checkpoint_config(const ModelSpec& model, const Tokenizer& tokenizer);

// The config.json of a checkpoint of the job. Resumed weights may end a text with other tokens than the
// tokenizer's end of a document. If they were trained with this tokenizer, their begin and end tokens are
// kept.
HfConfig checkpoint_config(const Job& job, const Tokenizer& tokenizer);

// The tokens that end a generated sequence: those of the resumed weights, and the end of a document.
std::vector<std::int32_t> ends_of_text(const Job& job, const Tokenizer& tokenizer);

}  // namespace hyperrun

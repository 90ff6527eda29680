// The corpus as tokens, made once by the controller before the devices start.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

struct TextData {
  Tokenizer tokenizer;
  std::vector<std::int32_t> tokens;  // of the corpus
};

// The job's own; else the one that the resumed weights were trained with; else there is none yet.
std::optional<Tokenizer> find_tokenizer(const Job& job);

// Reads the corpus, reads or trains the tokenizer. Throws kMissingFile, kBadCorpus, or kBadValue when the
// tokenizer has more tokens than the model.
TextData prepare_text(const Job& job);

// Throws kBadValue for a job that trains a policy: it takes no text but samples, which another program
// brings.
void require_text(const Job& job);

// Throws kBadValue when the tokenizer has more tokens than the model.
void check_vocab(const Job& job, const Tokenizer& tokenizer);

// A text from its begin: with the token that goes before it, where the tokenizer has one.
std::vector<std::int32_t> encode_from_begin(const Tokenizer& tokenizer, std::string_view text);

// What a generation begins with; empty when the job generates nothing. Throws kBadValue at
// run.generate.tokens when prompt and text are longer than a sequence.
std::vector<std::int32_t> encode_prompt(const Job& job, const Tokenizer& tokenizer);

// What a checkpoint of the model says beside its weights.
HfConfig checkpoint_config(const ModelSpec& model, const Tokenizer& tokenizer);

// The same of a job. Weights that it goes on from may end a text with more tokens, or others, than the
// tokenizer has for the end of a document; where the tokenizer is theirs, their begin and ends stay.
HfConfig checkpoint_config(const Job& job, const Tokenizer& tokenizer);

// What ends a generated sequence: the ends of those weights, and the end of a document.
std::vector<std::int32_t> ends_of_text(const Job& job, const Tokenizer& tokenizer);

// Tokens as a file of int32, and back.
void write_tokens(const std::filesystem::path& path, std::span<const std::int32_t> tokens);
std::vector<std::int32_t> read_tokens(const std::filesystem::path& path);

}  // namespace hyperrun

// Models of tokenizer.json: how a word becomes tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/model/text/pipeline_step.h"
#include "runtime/model/text/vocabulary.h"

namespace hyperrun {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of a word, which is valid UTF-8 and not empty.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& out) const = 0;
  // The bytes at the front of a word, at least one, that have the same ids by themselves, as has the rest.
  virtual std::size_t first_part(std::string_view word) const { return word.size(); }
};

struct ReadModel {
  std::shared_ptr<Vocabulary> vocabulary;  // without the added tokens
  std::unique_ptr<TokenModel> model;
};

// Reads a BPE or a Unigram model; refuses what is not supported at its place.
ReadModel read_model(const PipelineStep& step);

}  // namespace hyperrun

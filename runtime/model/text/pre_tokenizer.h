// Pre-tokenizers of tokenizer.json: how a text is cut into words, between which nothing is merged.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/model/text/function_ref.h"
#include "runtime/model/text/pipeline_step.h"

namespace hyperrun {

// A part of a text, never empty. It lives as long as the call that it is passed to.
struct TextPiece {
  std::string_view text;
  bool at_start = false;  // it begins where the whole text begins
};

using PieceSink = FunctionRef<void(TextPiece)>;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts a piece in valid UTF-8; `out` gets the parts from left to right.
  virtual void cut(TextPiece piece, PieceSink out) const = 0;
};

// Reads a pre-tokenizer; refuses what is not supported at its place.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const PipelineStep& step);

// GPT-2's pre-tokenizer: words by its pattern, each spelled in GPT-2's characters for bytes unless `raw`.
std::unique_ptr<PreTokenizer> gpt2_words(bool raw);

}  // namespace hyperrun

// Decoders of tokenizer.json: how tokens become text again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/model/text/pipeline_step.h"

namespace hyperrun {

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // Changes tokens in the file's spelling; joined, they are the text.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// Reads a decoder; refuses what is not supported at its place.
std::unique_ptr<TokenDecoder> read_decoder(const PipelineStep& step);

}  // namespace hyperrun

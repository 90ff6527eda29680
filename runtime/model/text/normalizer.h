// Normalizers of tokenizer.json: what happens to a text before it is cut into words.
#pragma once

#include <memory>
#include <string>

#include "runtime/model/text/pipeline_step.h"

namespace hyperrun {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Changes a text in valid UTF-8 to another.
  virtual void apply(std::string& text) const = 0;
};

// Reads a normalizer; refuses what is not supported at its place.
std::unique_ptr<Normalizer> read_normalizer(const PipelineStep& step);

}  // namespace hyperrun

// Cuts a text at the matches of a pattern.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/model/text/pre_tokenizer.h"
#include "runtime/model/text/regex.h"

namespace hyperrun {

// What becomes of a match. Below, "a-b" is cut at "-".
enum class SplitBehavior : std::uint8_t {
  kRemoved,             // a b
  kIsolated,            // a - b
  kMergedWithPrevious,  // a- b
  kMergedWithNext,      // a -b
  kContiguous,          // as isolated, but matches in a row stay together
};

class SplitPreTokenizer : public PreTokenizer {
 public:
  // `invert`: what lies between matches counts as the matches.
  SplitPreTokenizer(Regex pattern, SplitBehavior behavior, bool invert = false)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void cut(TextPiece piece, PieceSink out) const override;

 private:
  Regex pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// Reads a field that names a behavior.
SplitBehavior read_behavior(const PipelineStep& step, const char* otherwise);

}  // namespace hyperrun

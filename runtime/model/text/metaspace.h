// SentencePiece's mark for blanks, as tokenizer.json has it in pre-tokenizers and decoders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/model/text/pipeline_step.h"

namespace hyperrun {

struct Metaspace {
  enum class Prepend : std::uint8_t { kAlways, kFirst, kNever };

  std::string mark;        // one character
  Prepend prepend;         // where a mark goes before a piece that has none: anywhere, at the text's begin
  bool cuts_words = true;  // at each mark
};

// Reads the fields; older files have add_prefix_space in place of prepend_scheme.
Metaspace read_metaspace(const PipelineStep& step);

}  // namespace hyperrun

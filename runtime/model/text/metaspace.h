// SentencePiece's mark for blanks, as tokenizer.json has it in pre-tokenizers and decoders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/model/text/pipeline_step.h"

namespace hyperrun {

struct Metaspace {
  enum class Prepend : std::uint8_t { kAlways, kFirst, kNever };

  std::string mark;  // one character
  // Where a mark goes before a piece that has none. kFirst: before a piece with which the normalized text
  // begins; Hugging Face's library asks for the text before it was normalized, which differs where a
  // normalizer removes the front.
  Prepend prepend;
  bool cuts_words = true;  // at each mark
};

// Reads the fields; older files have add_prefix_space in place of prepend_scheme.
Metaspace read_metaspace(const PipelineStep& step);

}  // namespace hyperrun

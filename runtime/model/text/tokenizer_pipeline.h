// The steps of tokenizer.json around its model: how a text is normalized, how it is cut into words, and which
// token goes before it. Two chains of steps are supported:
//
//               byte-level (GPT-2, Llama 3)               SentencePiece (Llama 2)
// normalizer    none                                      a blank before the text, each blank to "▁"
// pre_tokenizer ByteLevel, or a Split by Llama 3's        none
//               pattern and ByteLevel
// decoder       ByteLevel                                 "▁" to a blank, bytes, without the first blank
#pragma once

#include <string>

#include "runtime/model/checkpoint/json_file.h"
#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

struct Pipeline {
  TokenizerParts::Symbols symbols = TokenizerParts::Symbols::kBytes;
  Words words = Words::kGpt2;
  std::string begin_of_text;  // the special token that goes before a text; empty: none
};

// Reads the steps; refuses any other chain at its field.
Pipeline read_pipeline(const JsonFields& root, const std::string& place);

// Writes the fields before "model", in their order.
void write_pipeline(const Tokenizer& tokenizer, nlohmann::ordered_json& root);

void refuse_if(bool condition, const JsonFields& fields, const char* field, const std::string& legal);

}  // namespace hyperrun

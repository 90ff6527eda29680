// Writes tokenizer.json for vocabularies that are made here, of trained and of imported models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/text/bpe_train.h"

namespace hyperrun {

// In the manner of GPT-2, with kEndOfText as the token 0.
std::string byte_level_json(const TrainedBpe& trained);

// In the manner of Llama 2: tokens in the file's spelling by id, of which the first three are <unk>, <s>,
// which goes before a text, and </s>.
std::string sentence_piece_json(const std::vector<std::string>& tokens,
                                const std::vector<Bpe::Merge>& merges);

}  // namespace hyperrun

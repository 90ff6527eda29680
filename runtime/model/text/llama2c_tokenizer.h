// llama2.c's tokenizer.bin, made of a SentencePiece model: int32 length of the longest token, then of each
// token a float32 score, its int32 length and its bytes. Token 0 is <unk>, 1 <s>, 2 </s>, 3 to 258 are the
// bytes. Of two neighbours that together are a token, those merge whose token has the highest score.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

// The file does not say how many tokens it has: as many as the model's vocabulary. kMissingFile;
// kBadTokenizer for anything but exactly such a file.
Tokenizer read_llama2c_tokenizer(const std::filesystem::path& path, std::int32_t vocab_size);

}  // namespace hyperrun

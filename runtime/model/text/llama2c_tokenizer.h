// Reads llama2.c's tokenizer.bin, which is made of a SentencePiece model: the int32 length of the longest
// token, then for each token a float32 score, an int32 length and the bytes. Token 0 is <unk>, 1 <s>, 2 </s>,
// 3 to 258 are the bytes. Neighbours merge if they are a token together, that with the highest score first.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

// Reads a file of `vocab_size` tokens, because the file itself does not say how many it has. kMissingFile;
// kBadTokenizer for anything but exactly such a file.
Tokenizer read_llama2c_tokenizer(const std::filesystem::path& path, std::int32_t vocab_size);

}  // namespace hyperrun

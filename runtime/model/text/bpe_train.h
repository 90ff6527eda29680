// Trains byte-pair encoding: the most frequent pair of neighbours in all words is merged, again and again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/text/bpe.h"

namespace hyperrun {

struct TrainedBpe {
  std::vector<std::string> tokens;  // the bytes of each token, by id
  std::vector<Bpe::Merge> merges;   // in the order of their ranks
};

// Words are GPT-2's, within documents that kEndOfText ends. The same text gives the same tokens, always: the
// more frequent pair is merged first, of equals the one with the smaller ids. Ids: kEndOfText is 0, the bytes
// follow in the order of their printable forms, then the merges as they were found, to at most `vocab_size`
// tokens; fewer when no pair occurs twice any more. `text` must be valid UTF-8.
TrainedBpe train_bpe(std::string_view text, std::int32_t vocab_size);

}  // namespace hyperrun

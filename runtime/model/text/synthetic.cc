#include "runtime/model/text/synthetic.h"

namespace hyperrun {

std::vector<std::int32_t> synthetic_tokens(std::int32_t vocab, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::uint64_t x = 12345;
  std::int64_t t = 1;
  for (std::int32_t& out : tokens) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    t = (x >> 33) % 4 != 0 ? (t * 7 + 3) % vocab
                           : static_cast<std::int64_t>((x >> 40) % static_cast<std::uint64_t>(vocab));
    out = static_cast<std::int32_t>(t);
  }
  return tokens;
}

}  // namespace hyperrun

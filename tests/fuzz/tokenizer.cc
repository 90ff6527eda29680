// A tokenizer.json, which then encodes a text and decodes the tokens. A NUL ends the document; the text
// follows it.
#include "runtime/model/text/tokenizer.h"

#include <algorithm>
#include <numeric>

#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

namespace {

constexpr std::string_view kText =
    "Hello,  World!\r\n\tit's 12345 caf\xC3\xA9 <s>\xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x8E\x89\xFF";

void use(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  for (const std::int32_t id : ids)
    fuzz::expect(id >= 0 && id < tokenizer.vocab_size(), "a token beyond the vocabulary");
  tokenizer.decode(ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  const std::size_t end = input.find('\0');
  fuzz::take_or_refuse_at([&] {
    const Tokenizer tokenizer(std::string(input.substr(0, end)), "/tokenizer.json");
    use(tokenizer, kText);
    if (end != std::string_view::npos) use(tokenizer, input.substr(end + 1));
    // Ids of a model may be beyond those of its tokenizer.
    std::vector<std::int32_t> ids(static_cast<std::size_t>(std::clamp(tokenizer.vocab_size(), 0, 300)) + 3);
    std::iota(ids.begin(), ids.end(), -1);
    tokenizer.decode(ids);
    tokenizer.end_of_text();
    tokenizer.begin_of_text();
  });
  return 0;
}

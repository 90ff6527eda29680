// Models and tokenizers of llama2.c.
#include "runtime/model/checkpoint/llama2c.h"

#include "runtime/model/text/llama2c_tokenizer.h"
#include "tests/fuzz/folder.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::Folder folder;
  folder.put("file.bin", fuzz::text_of(data, size));
  const std::filesystem::path path = folder.path() / "file.bin";
  fuzz::take_or_refuse_at([&] { Llama2cFile(path).model(); });
  // The number of tokens is that of the model; here it follows from the size.
  fuzz::take_or_refuse_at([&] {
    const Tokenizer tokenizer = read_llama2c_tokenizer(path, static_cast<std::int32_t>(size / 9));
    tokenizer.decode(tokenizer.encode("a b"));
  });
  return 0;
}

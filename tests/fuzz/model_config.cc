// config.json of a model. What is taken is written, alone and into the file that was given, and read again.
#include "runtime/model/checkpoint/given_config.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "tests/fuzz/folder.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::Folder folder;
  folder.put("config.json", fuzz::text_of(data, size));
  const std::filesystem::path path = folder.path() / "config.json";
  fuzz::take_or_refuse_at([&] {
    const HfConfig config = read_config(path);
    const std::string again = to_config_json(config, path);
    folder.put("config.json", again);
    fuzz::expect(read_config(path) == config, "another model once written into its file");
  });
  return 0;
}

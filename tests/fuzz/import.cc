// Configurations of other frameworks. The first line is the name of the file, which has a part in what it is
// taken for; the rest is its content.
#include "runtime/frameworks/import.h"

#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  const std::size_t end = input.find('\n');
  if (end == std::string_view::npos || end > 20) return 0;
  // Names of folders are left out: files beside the configuration are read.
  const std::string name = "/nowhere/" + std::filesystem::path(input.substr(0, end)).filename().string();
  fuzz::take_or_refuse([&] {
    const frameworks::ImportedRun run =
        frameworks::import_run(name, input.substr(end + 1), frameworks::RunImport{.devices = 8});
    frameworks::import_report(run, name);
  });
  return 0;
}

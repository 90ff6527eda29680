// A manifest of samples; each line that is taken is written and read again.
#include "runtime/media/manifest.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::take_or_refuse_at([&] {
    for (const MediaSample& sample : parse_manifest(fuzz::text_of(data, size), "/manifest.jsonl")) {
      const std::vector<MediaSample> again = parse_manifest(manifest_line(sample), "/manifest.jsonl");
      fuzz::expect(again.size() == 1 && again.front() == sample, "another sample once written");
    }
  });
  return 0;
}

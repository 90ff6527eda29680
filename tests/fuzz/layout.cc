// MindSpore's notation of a layout, which is written and read again.
#include "runtime/spec/layout_notation.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::take_or_refuse([&] {
    const PositionalLayout layout = parse_layout(fuzz::text_of(data, size));
    fuzz::expect(parse_layout(format_layout(layout)) == layout, "another layout once written");
  });
  return 0;
}

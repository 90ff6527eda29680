// A picture: its size, its pixels, and patches of it.
#include "runtime/media/image.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::take_or_refuse_at([&] {
    const ImageSize head = png_size(bytes, "/a.png");
    // A picture of the largest size takes a second; the fuzzer is to see many.
    if (std::int64_t{head.width} * head.height > 256 * 256) return;
    const Image image = decode_png(bytes, "/a.png");
    fuzz::expect(image.size.width == head.width && image.size.height == head.height,
                 "two sizes of a picture");
    fuzz::expect(std::ssize(image.rgb) == 3 * std::int64_t{head.width} * head.height, "not a value a pixel");
    for (const float value : image.rgb) fuzz::expect(value >= -1 && value <= 1, "a colour out of range");
    patches(image, 4, "/a.png");
  });
  return 0;
}

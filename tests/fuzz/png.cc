// A picture: its size, its pixels, and patches of it. It is read as it is, and with the sums of its chunks
// made right, so that damage behind them is seen as well.
#include <zlib.h>

#include <algorithm>
#include <string>

#include "runtime/media/image.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

namespace {

constexpr std::size_t kSignature = 8, kWord = 4;

std::uint32_t word_at(const std::string& bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < kWord; ++i) word = word << 8 | static_cast<unsigned char>(bytes[at + i]);
  return word;
}

// A chunk is its length, its kind, its content, and the sum over kind and content.
std::string with_right_sums(std::string bytes) {
  for (std::size_t at = kSignature; at + 3 * kWord <= bytes.size();) {
    const std::size_t content = word_at(bytes, at);
    if (content > bytes.size() - at - 3 * kWord) break;
    const std::size_t sum_at = at + 2 * kWord + content;
    const auto* kind = reinterpret_cast<const Bytef*>(bytes.data() + at + kWord);
    const uLong sum = crc32(0, kind, static_cast<uInt>(kWord + content));
    for (std::size_t i = 0; i < kWord; ++i)
      bytes[sum_at + i] = static_cast<char>(sum >> (8 * (kWord - 1 - i)));
    at = sum_at + kWord;
  }
  return bytes;
}

void read(std::string_view bytes) {
  const ImageSize head = png_size(bytes, "/a.png");
  // A picture of the largest size takes a second; the fuzzer is to see many.
  if (std::int64_t{head.width} * head.height > 64 * 64) return;
  const Image image = decode_png(bytes, "/a.png");
  fuzz::expect(image.size.width == head.width && image.size.height == head.height, "two sizes of a picture");
  fuzz::expect(std::ssize(image.rgb) == 3 * std::int64_t{head.width} * head.height, "not a value a pixel");
  for (const float value : image.rgb) fuzz::expect(value >= -1 && value <= 1, "a colour out of range");
  patches(image, 4, "/a.png");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(fuzz::text_of(data, size));
  fuzz::take_or_refuse_at([&] { read(bytes); });
  if (const std::string mended = with_right_sums(bytes); mended != bytes)
    fuzz::take_or_refuse_at([&] { read(mended); });
  return 0;
}

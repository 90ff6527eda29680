#include "runtime/media/image.h"

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <span>

#include "runtime/base/divisors.h"
#include "runtime/base/error.h"
#include "runtime/base/joined.h"

namespace hyperrun {
namespace {

constexpr std::size_t kChannels = 4;  // red, green, blue, opacity; every PNG is expanded to these

Error damaged(const std::string& cause, const std::string& place) {
  return Error(Code::kBadCorpus, cause)
      .at(place)
      .legal(fmt::format("a whole PNG of 1 x 1 to {} x {} pixels", kMostPixels, kMostPixels))
      .fix("take the picture from its source again, or leave the sample out");
}

// A PNG reader of libpng, which leaves by longjmp after an error. Therefore nothing with a destructor may
// live between setjmp and the calls that may jump: callers of the functions below own the buffers.
struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const char* data = nullptr;
  std::size_t left = 0;
  char message[160] = {};

  explicit Reader(std::string_view bytes) : data(bytes.data()), left(bytes.size()) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info = png != nullptr ? png_create_info_struct(png) : nullptr;
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto* self = static_cast<Reader*>(png_get_error_ptr(png));
    std::snprintf(self->message, sizeof self->message, "%s", text);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep out, std::size_t bytes) {
    auto* self = static_cast<Reader*>(png_get_io_ptr(png));
    if (bytes > self->left) png_error(png, "cut short");
    std::memcpy(out, self->data, bytes);
    self->data += bytes;
    self->left -= bytes;
  }
};

// read_head() and read_rows() return false after an error, whose text is in `reader`.
bool read_head(Reader& reader, ImageSize& size) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_read_fn(reader.png, &reader, Reader::on_read);
  png_set_user_limits(reader.png, kMostPixels, kMostPixels);
  png_read_info(reader.png, reader.info);
  size.width = static_cast<std::int32_t>(png_get_image_width(reader.png, reader.info));
  size.height = static_cast<std::int32_t>(png_get_image_height(reader.png, reader.info));
  return true;
}

// Reads every kind of PNG as 16-bit RGBA in this host's byte order (8 bits are multiplied by 257, which is
// exact). `rows` has the address of each row of kChannels * width values.
bool read_rows(Reader& reader, std::span<png_bytep> rows, std::size_t row_bytes) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_expand_16(reader.png);  // palettes and transparent colours as well
  png_set_gray_to_rgb(reader.png);
  png_set_add_alpha(reader.png, 0xffff, PNG_FILLER_AFTER);
  if (std::endian::native == std::endian::little) png_set_swap(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes) png_error(reader.png, "rows of another length");
  png_read_image(reader.png, rows.data());
  png_read_end(reader.png, nullptr);
  return true;
}

ImageSize require_head(Reader& reader, std::string_view bytes, const std::string& place) {
  HR_CHECK(reader.info != nullptr, "libpng has no memory");
  if (png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0,
                  std::min<std::size_t>(bytes.size(), 8)) != 0 ||
      bytes.size() < 8)
    throw damaged("no PNG: it does not begin as one", place);
  ImageSize size;
  if (!read_head(reader, size)) throw damaged(std::string("no readable PNG: ") + reader.message, place);
  return size;
}

}  // namespace

ImageSize png_size(std::string_view bytes, const std::string& place) {
  Reader reader(bytes);
  return require_head(reader, bytes, place);
}

Image decode_png(std::string_view bytes, const std::string& place) {
  Reader reader(bytes);
  Image image{require_head(reader, bytes, place), {}};
  const auto width = static_cast<std::size_t>(image.size.width);
  const auto height = static_cast<std::size_t>(image.size.height);
  std::vector<std::uint16_t> rgba(kChannels * width * height);
  std::vector<png_bytep> rows(height);
  for (std::size_t y = 0; y < height; ++y)
    rows[y] = reinterpret_cast<png_bytep>(rgba.data() + y * width * kChannels);
  if (!read_rows(reader, rows, kChannels * width * sizeof(std::uint16_t)))
    throw damaged(std::string("no readable PNG: ") + reader.message, place);

  image.rgb.resize(3 * width * height);
  for (std::size_t i = 0; i < width * height; ++i) {
    const std::uint16_t* pixel = &rgba[i * kChannels];
    const float opacity = static_cast<float>(pixel[3]) / 65535.0F;
    for (std::size_t c = 0; c < 3; ++c) {
      const float on_white = static_cast<float>(pixel[c]) / 65535.0F * opacity + (1.0F - opacity);
      image.rgb[c * width * height + i] = 2.0F * on_white - 1.0F;
    }
  }
  return image;
}

std::int32_t patch_count(ImageSize size, std::int32_t patch, const std::string& place) {
  HR_CHECK(patch >= 1 && size.width >= 1 && size.height >= 1);
  if (size.width % patch == 0 && size.height % patch == 0)
    return (size.width / patch) * (size.height / patch);
  throw Error(Code::kBadValue, fmt::format("patches of {} pixels do not cover a picture of {} x {}", patch,
                                           size.width, size.height))
      .at(place)
      .legal(joined(divisors(std::gcd(size.width, size.height))))
      .fix("choose a size of patches that divides every picture, or scale the picture");
}

std::vector<float> patches(const Image& image, std::int32_t patch, const std::string& place) {
  const auto count = static_cast<std::size_t>(patch_count(image.size, patch, place));
  const auto side = static_cast<std::size_t>(patch), width = static_cast<std::size_t>(image.size.width);
  const std::size_t across = width / side, plane = width * static_cast<std::size_t>(image.size.height);
  std::vector<float> out;
  out.reserve(count * 3 * side * side);
  for (std::size_t p = 0; p < count; ++p)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t y = 0; y < side; ++y) {
        const auto from =
            image.rgb.begin() +
            static_cast<std::ptrdiff_t>(c * plane + (p / across * side + y) * width + p % across * side);
        out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(side));
      }
  return out;
}

}  // namespace hyperrun

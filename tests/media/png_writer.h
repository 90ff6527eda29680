// Pictures with known values, written by libpng.
#pragma once

#include <png.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {

// The content of a PNG. `rows` are packed in PNG's order: samples of 16 bits are big-endian, samples of less
// than 8 bits start from the left.
struct PngPicture {
  std::uint32_t width = 0, height = 0;
  int depth = 8, colour = PNG_COLOR_TYPE_RGB;
  bool interlaced = false;
  std::vector<std::vector<std::uint8_t>> rows;
  std::vector<png_color> palette;
  std::vector<std::uint8_t> palette_opacity;
  int transparent_grey = -1;  // the grey value that is transparent; -1: none
};

inline std::string png_of(const PngPicture& picture) {
  std::string bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  HR_CHECK(info != nullptr);
  png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep data, std::size_t n) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<const char*>(data), n);
      },
      nullptr);
  png_set_IHDR(png, info, picture.width, picture.height, picture.depth, picture.colour,
               picture.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (!picture.palette.empty())
    png_set_PLTE(png, info, picture.palette.data(), static_cast<int>(picture.palette.size()));
  if (!picture.palette_opacity.empty())
    png_set_tRNS(png, info, picture.palette_opacity.data(), static_cast<int>(picture.palette_opacity.size()),
                 nullptr);
  if (picture.transparent_grey >= 0) {
    png_color_16 grey{};
    grey.gray = static_cast<png_uint_16>(picture.transparent_grey);
    png_set_tRNS(png, info, nullptr, 0, &grey);
  }
  std::vector<png_bytep> rows;
  for (const auto& row : picture.rows) rows.push_back(const_cast<png_bytep>(row.data()));
  png_set_rows(png, info, rows.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

// A picture of width x height with value (x + 2 y + 5 c + 11) modulo 256 at column x, row y, channel c.
inline PngPicture ramp(std::uint32_t width, std::uint32_t height) {
  PngPicture p{width, height};
  for (std::uint32_t y = 0; y < height; ++y) {
    p.rows.emplace_back();
    for (std::uint32_t x = 0; x < width; ++x)
      for (std::uint32_t c = 0; c < 3; ++c)
        p.rows.back().push_back(static_cast<std::uint8_t>(x + 2 * y + 5 * c + 11));
  }
  return p;
}

}  // namespace hyperrun

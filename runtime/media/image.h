// Converts pictures for an image encoder: PNG to planes of float, planes to patches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

struct ImageSize {
  std::int32_t width = 0, height = 0;  // pixels
};

struct Image {
  ImageSize size;
  std::vector<float> rgb;  // [3, height, width], each value from -1 (nothing of the colour) to 1 (all of it)
};

// The largest width and the largest height that are read.
inline constexpr std::int32_t kMostPixels = 4096;

// Decodes any PNG: grey, palette or colour, 1 to 16 bits, interlaced or not. Transparent pixels are blended
// with white: a value c in [0, 1] with opacity a becomes 2 (c a + 1 - a) - 1. Values are used as stored
// (usually sRGB); a gAMA chunk changes nothing, as in most loaders of training data. kBadCorpus at `place`:
// no PNG, damaged, cut short, or larger than kMostPixels.
Image decode_png(std::string_view bytes, const std::string& place);

// Reads the size from the head of the file alone. Throws the errors of decode_png that the head shows.
ImageSize png_size(std::string_view bytes, const std::string& place);

// The number of patches of patch x patch pixels that cover a picture exactly. kBadValue at `place` if `patch`
// (>= 1) does not divide width and height; the legal values are the sizes that do.
std::int32_t patch_count(ImageSize size, std::int32_t patch, const std::string& place);

// The patches, [patch_count, 3 * patch * patch], from left to right, then down. Each is [3, patch, patch],
// the order of the patch embedding's weights in a published ViT (a convolution's [hidden, 3, P, P]).
std::vector<float> patches(const Image& image, std::int32_t patch, const std::string& place);

}  // namespace hyperrun

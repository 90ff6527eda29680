// Pictures as an image encoder takes them: PNG to planes of float, planes to patches.
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

// Any PNG: grey, palette or colour, 1 to 16 bits, interlaced or not. What is transparent lies on white: a
// value c in [0, 1] under an opacity a becomes 2 (c a + 1 - a) - 1. Values are used as stored (sRGB as a
// rule): a gAMA chunk changes nothing, as in most loaders of training data. kBadCorpus at `place`: no PNG,
// damaged, cut short, or larger than kMostPixels.
Image decode_png(std::string_view bytes, const std::string& place);

// From the head of the file alone. Errors as decode_png, as far as the head shows them.
ImageSize png_size(std::string_view bytes, const std::string& place);

// How many patches of patch x patch pixels cover a picture exactly. kBadValue at `place` where `patch` (>= 1)
// does not divide width and height; the legal values are the sizes that do.
std::int32_t patch_count(ImageSize size, std::int32_t patch, const std::string& place);

// [patch_count, 3 * patch * patch]: patches from left to right, then down; each is [3, patch, patch], the
// order in which a published ViT keeps the weights of its patch embedding (a convolution's [hidden, 3, P,
// P]).
std::vector<float> patches(const Image& image, std::int32_t patch, const std::string& place);

}  // namespace hyperrun

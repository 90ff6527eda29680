#include "runtime/media/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/media/png_writer.h"
#include "tests/support/errors.h"

namespace hyperrun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An 8-bit value in [-1, 1].
float of_byte(int value) { return 2.0F * static_cast<float>(value) / 255.0F - 1.0F; }

// One pixel's red, green and blue.
std::vector<float> pixel(const Image& image, std::int32_t x, std::int32_t y) {
  const auto plane = static_cast<std::size_t>(image.size.width) * static_cast<std::size_t>(image.size.height);
  const auto at = static_cast<std::size_t>(std::int64_t{y} * image.size.width + x);
  return {image.rgb[at], image.rgb[plane + at], image.rgb[2 * plane + at]};
}

// Matches a colour within the rounding of a few float operations on values up to 2.
auto is_colour(float red, float green, float blue) {
  constexpr float kRounding = 1e-6F;
  return ElementsAre(::testing::FloatNear(red, kRounding), ::testing::FloatNear(green, kRounding),
                     ::testing::FloatNear(blue, kRounding));
}

Image decode(const PngPicture& picture) { return decode_png(png_of(picture), "p.png"); }

TEST(Png, ColourOfEightBits) {
  const Image image = decode(ramp(5, 3));
  EXPECT_EQ(image.size.width, 5);
  EXPECT_EQ(image.size.height, 3);
  ASSERT_EQ(image.rgb.size(), 3u * 5 * 3);
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 5; ++x) {
      const int first = x + 2 * y + 11;
      EXPECT_THAT(pixel(image, x, y), is_colour(of_byte(first), of_byte(first + 5), of_byte(first + 10)));
    }
}

TEST(Png, InterlacedIsTheSame) {
  PngPicture picture = ramp(19, 13);
  const Image straight = decode(picture);
  picture.interlaced = true;
  EXPECT_EQ(decode(picture).rgb, straight.rgb);
}

TEST(Png, Palette) {
  PngPicture picture{4, 1, 2, PNG_COLOR_TYPE_PALETTE};
  picture.palette = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {10, 20, 30}};
  picture.palette_opacity = {255, 0};  // the second is transparent, the others are not
  picture.rows = {{0b00'01'10'11}};
  const Image image = decode(picture);
  EXPECT_THAT(pixel(image, 0, 0), is_colour(1, -1, -1));
  EXPECT_THAT(pixel(image, 1, 0), is_colour(1, 1, 1));  // white shows through
  EXPECT_THAT(pixel(image, 2, 0), is_colour(-1, -1, 1));
  EXPECT_THAT(pixel(image, 3, 0), is_colour(of_byte(10), of_byte(20), of_byte(30)));
}

// All 16 bits count: 0x1234 is no 8-bit value.
TEST(Png, SixteenBits) {
  PngPicture picture{1, 1, 16, PNG_COLOR_TYPE_RGB};
  picture.rows = {{0x12, 0x34, 0xff, 0xff, 0x00, 0x01}};
  EXPECT_THAT(pixel(decode(picture), 0, 0),
              is_colour(2 * 4660 / 65535.0F - 1, 1, static_cast<float>(2 / 65535.0 - 1)));
}

TEST(Png, GreyOfFourBits) {
  PngPicture picture{2, 1, 4, PNG_COLOR_TYPE_GRAY};
  picture.rows = {{0x5f}};
  EXPECT_THAT(pixel(decode(picture), 0, 0), is_colour(-1 / 3.0F, -1 / 3.0F, -1 / 3.0F));
  EXPECT_THAT(pixel(decode(picture), 1, 0), is_colour(1, 1, 1));
}

TEST(Png, GreyOfWhichOneValueIsTransparent) {
  PngPicture picture{2, 1, 8, PNG_COLOR_TYPE_GRAY};
  picture.rows = {{50, 51}};
  picture.transparent_grey = 50;
  EXPECT_THAT(pixel(decode(picture), 0, 0), is_colour(1, 1, 1));
  EXPECT_THAT(pixel(decode(picture), 1, 0), is_colour(of_byte(51), of_byte(51), of_byte(51)));
}

TEST(Png, OpacityMixesWithWhite) {
  PngPicture picture{3, 1, 8, PNG_COLOR_TYPE_RGB_ALPHA};
  picture.rows = {{0, 100, 200, 0, /**/ 0, 100, 200, 255, /**/ 0, 100, 200, 51}};
  const Image image = decode(picture);
  EXPECT_THAT(pixel(image, 0, 0), is_colour(1, 1, 1));
  EXPECT_THAT(pixel(image, 1, 0), is_colour(-1, of_byte(100), of_byte(200)));
  // A fifth of the colour and four fifths of white give bytes 204, 224, 244.
  EXPECT_THAT(pixel(image, 2, 0), is_colour(of_byte(204), of_byte(224), of_byte(244)));
}

TEST(Png, GreyWithOpacity) {
  PngPicture picture{1, 1, 8, PNG_COLOR_TYPE_GRAY_ALPHA};
  picture.rows = {{100, 51}};
  EXPECT_THAT(pixel(decode(picture), 0, 0), is_colour(of_byte(224), of_byte(224), of_byte(224)));
}

TEST(Png, SizeIsReadFromTheHead) {
  const std::string bytes = png_of(ramp(40, 30));
  const ImageSize size = png_size(std::string_view(bytes).substr(0, bytes.size() / 2), "p.png");
  EXPECT_EQ(size.width, 40);
  EXPECT_EQ(size.height, 30);
}

// A truncated picture is refused with its place, wherever it ends.
TEST(Png, EveryTruncationIsRefused) {
  const std::string bytes = png_of(ramp(16, 16));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_ERROR(decode_png(std::string_view(bytes).substr(0, length), "cut.png"), Code::kBadCorpus,
                 "cut.png", length < 8 ? "does not begin as one" : "cut short");
}

TEST(Png, DamageIsAnErrorNeverACrash) {
  const std::string bytes = png_of(ramp(16, 16));
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 1 + i % 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      EXPECT_EQ(decode_png(damaged, "p.png").rgb.size(), 3u * 16 * 16);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kBadCorpus) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);  // checksums see nearly all of it
}

TEST(Png, NoiseIsAnErrorNeverACrash) {
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    std::string noise(random() % 300, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    if (i % 2 == 0) noise.insert(0, "\x89PNG\r\n\x1a\n");
    EXPECT_ERROR(decode_png(noise, "noise.png"), Code::kBadCorpus, "noise.png", "no ");
  }
}

TEST(Png, TooLargeIsRefusedByItsHead) {
  PngPicture wide{4097, 1, 8, PNG_COLOR_TYPE_GRAY};
  wide.rows = {std::vector<std::uint8_t>(4097)};
  EXPECT_ERROR(decode_png(png_of(wide), "wide.png"), Code::kBadCorpus, "wide.png", "no readable PNG");
  EXPECT_THAT(error_of([&] { decode_png(png_of(wide), "wide.png"); }).legal(), HasSubstr("4096 x 4096"));
}

// A 4 x 6 picture has six patches of 2 x 2. Each is red, green, blue, and each of these row by row.
TEST(Patches, LieInTheOrderOfAConvolutionsWeights) {
  const Image image = decode(ramp(4, 6));
  const std::vector<float> all = patches(image, 2, "p.png");
  ASSERT_EQ(patch_count(image.size, 2, "p.png"), 6);
  ASSERT_EQ(all.size(), 6u * 3 * 2 * 2);
  std::size_t at = 0;
  for (int down = 0; down < 3; ++down)
    for (int across = 0; across < 2; ++across)
      for (std::size_t c = 0; c < 3; ++c)
        for (int y = 0; y < 2; ++y)
          for (int x = 0; x < 2; ++x) EXPECT_EQ(all[at++], pixel(image, across * 2 + x, down * 2 + y)[c]);
}

TEST(Patches, OneForAWholePicture) {
  const Image image = decode(ramp(6, 6));
  EXPECT_EQ(patches(image, 6, "p.png"), image.rgb);
}

TEST(Patches, ThatDoNotCoverAreRefused) {
  const Image image = decode(ramp(12, 18));
  EXPECT_ERROR(patches(image, 4, "p.png"), Code::kBadValue, "p.png", "12 x 18");
  EXPECT_EQ(error_of([&] { patches(image, 4, "p.png"); }).legal(), "1, 2, 3, 6");
}

}  // namespace
}  // namespace hyperrun

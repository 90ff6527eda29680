// The common parts of pictures: self-contained SVG for light and dark pages, without scripts.
#pragma once

#include <string>
#include <string_view>

namespace hyperrun {

// Escapes text between tags or in quotes. Characters that XML cannot express become U+FFFD.
std::string svg_escape(std::string_view text);

// CSS rules of a picture besides the common ones: for light pages, and the differences on dark ones.
struct SvgStyle {
  std::string_view light, dark;
};

// The opening tag, the style, and the title and subtitle, which begin at `left`. "</svg>" ends the picture.
std::string svg_begin(double width, double height, double left, std::string_view title,
                      std::string_view subtitle, const SvgStyle& style);

}  // namespace hyperrun

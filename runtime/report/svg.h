// What pictures have in common: self-contained SVG for light and dark pages, without scripts.
#pragma once

#include <string>
#include <string_view>

namespace hyperrun {

// Text between tags or in quotes. What XML has no way to say is U+FFFD.
std::string svg_escape(std::string_view text);

// Rules of a picture besides those that all have: for light pages, and what is different on dark ones.
struct SvgStyle {
  std::string_view light, dark;
};

// The opening tag, the style, title and subtitle, which begin at `left`. "</svg>" ends the picture.
std::string svg_begin(double width, double height, double left, std::string_view title,
                      std::string_view subtitle, const SvgStyle& style);

}  // namespace hyperrun

#include "runtime/report/svg.h"

#include <fmt/core.h>

#include <array>
#include <cstdarg>
#include <cstdio>

namespace hyperrun {
namespace {

constexpr std::string_view kLight =
    R"(  svg { background: #ffffff; font-family: "Inter", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif; }
  text { fill: #6b7280; font-size: 13px; }
  .title { fill: #111827; font-size: 18px; font-weight: 600; }
  .value { fill: #1d4ed8; font-size: 14px; font-weight: 600; }
  .grid { stroke: #e5e7eb; stroke-width: 1; }
  .axis { stroke: #9ca3af; stroke-width: 1; }
)";

constexpr std::string_view kDark = R"(    svg { background: #0f172a; }
    text { fill: #94a3b8; }
    .title { fill: #f1f5f9; }
    .value { fill: #7aa5ff; }
    .grid { stroke: #1e293b; }
    .axis { stroke: #475569; }
)";

}  // namespace

std::string svg_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: {
        const bool no_character = static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
        out += no_character ? std::string("\uFFFD") : std::string(1, c);
      }
    }
  }
  return out;
}

std::string svg_begin(double width, double height, double left, std::string_view title,
                      std::string_view subtitle, const SvgStyle& style) {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:g} {:g}\" width=\"{:g}\" height=\"{:g}\" "
      "role=\"img\">\n",
      width, height, width, height);
  out += "<title>" + svg_escape(title) + "</title>\n";
  out += "<style>\n" + std::string(kLight) + std::string(style.light);
  out += "  @media (prefers-color-scheme: dark) {\n" + std::string(kDark) + std::string(style.dark) + "  }\n";
  out += "</style>\n";
  out += fmt::format("<text class=\"title\" x=\"{:g}\" y=\"36\">", left) + svg_escape(title) + "</text>\n";
  out += fmt::format("<text x=\"{:g}\" y=\"58\">", left) + svg_escape(subtitle) + "</text>\n";
  return out;
}

}  // namespace hyperrun

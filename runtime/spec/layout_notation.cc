#include "runtime/spec/layout_notation.h"

#include <fmt/core.h>

#include <charconv>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::string_view kNone = "None";
constexpr std::string_view kMesh = "Layout";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  PositionalLayout run() {
    PositionalLayout layout;
    if (skip(kMesh)) layout.mesh = mesh();
    list([&] { layout.dims.push_back(entry()); });
    if (!at_end()) fail("nothing may follow the layout");
    return layout;
  }

 private:
  std::vector<MeshAxis> mesh() {
    std::vector<MeshAxis> axes;
    std::vector<std::string> names;
    expect('(');
    list([&] { axes.push_back({"", size()}); });
    expect(',');
    list([&] { names.push_back(name()); });
    skip(",");
    expect(')');
    if (axes.empty()) fail("the mesh in front has no axis");
    if (axes.size() != names.size())
      fail(fmt::format("the mesh in front has {} sizes and {} names", axes.size(), names.size()));
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i].name = names[i];
    return axes;
  }

  std::vector<std::string> entry() {
    if (skip(kNone)) return {};
    std::vector<std::string> axes;
    if (next() == '(') {
      list([&] { axes.push_back(name()); });
      if (axes.empty()) fail("these parentheses name no axis");
      return axes;
    }
    axes.push_back(quoted("an axis in quotes, several in parentheses, or \"None\" must stand here"));
    if (axes[0] == kNone) axes.clear();
    return axes;
  }

  std::string name() {
    std::string axis = quoted("an axis in quotes must stand here");
    if (axis == kNone) fail("\"None\" stands alone, not among axes");
    return axis;
  }

  std::string quoted(const char* expected) {
    const char quote = next();
    if (quote != '"' && quote != '\'') fail(expected);
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("this quote is not closed");
    std::string inside(text_.substr(at_ + 1, end - at_ - 1));
    if (inside.empty()) fail(expected);
    if (inside.find_first_of("\"'") != std::string::npos) fail("no axis has a quote in its name");
    at_ = end + 1;
    return inside;
  }

  std::int32_t size() {
    if (!is_digit(next())) fail("the size of an axis must stand here");
    std::int32_t value = 0;
    const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (problem != std::errc()) fail("this size is too large");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  template <class Element>
  void list(Element element) {
    expect('(');
    while (!skip(")")) {
      element();
      if (!skip(",") && next() != ')') fail("',' or ')' must stand here");
    }
  }

  void expect(char c) {
    if (!skip({&c, 1})) fail(std::string("'") + c + "' must stand here");
  }

  bool skip(std::string_view word) {
    next();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  // The next character that is no space; 0 at the end.
  char next() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool at_end() {
    next();
    return at_ == text_.size();
  }

  [[noreturn]] void fail(const std::string& what) {
    const std::string where = at_end() ? "at its end: " : fmt::format("at character {}: ", at_ + 1);
    throw Error(Code::kBadValue, "\"layout\" is not understood " + where + what)
        .legal(
            R"(("AXIS", "None", ("MAJOR", "MINOR")), in front of it Layout((SIZE, ...), ("AXIS", ...)) or nothing)")
        .fix("write an entry for each dimension of the tensor: the axis that splits it, or \"None\"");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string in_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

}  // namespace

PositionalLayout parse_layout(std::string_view text) { return Parser(text).run(); }

std::string format_mesh(const std::vector<MeshAxis>& mesh) {
  std::string sizes;
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh) {
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(axis.size);
    names.push_back(axis.name);
  }
  return std::string(kMesh) + "((" + sizes + "), (" + in_list(names) + "))";
}

std::string format_layout(const PositionalLayout& layout) {
  std::string entries;
  for (const std::vector<std::string>& axes : layout.dims) {
    entries += entries.empty() ? "" : ", ";
    if (axes.size() > 1)
      entries += "(" + in_list(axes) + ")";
    else
      entries += axes.empty() ? "\"None\"" : in_list(axes);
  }
  return (layout.mesh.empty() ? "" : format_mesh(layout.mesh)) + "(" + entries + ")";
}

}  // namespace hyperrun

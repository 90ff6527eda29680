#include "runtime/model/text/spelling.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/base/utf8.h"
#include "runtime/model/text/byte_map.h"

namespace hyperrun {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

// The character of each byte in UTF-8: one byte or two.
struct Spelled {
  std::array<char, 2> text;
  std::uint8_t bytes;
};
constexpr std::array<Spelled, 256> kSpelled = [] {
  std::array<Spelled, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    const char32_t code = kByteToChar[byte];
    table[byte] =
        code < 0x80
            ? Spelled{{static_cast<char>(code), 0}, 1}
            : Spelled{{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))}, 2};
  }
  return table;
}();

}  // namespace

std::string printable(std::string_view bytes) {
  std::string text;
  append_printable(bytes, text);
  return text;
}

void append_printable(std::string_view bytes, std::string& out) {
  std::size_t at = out.size();
  out.resize(at + 2 * bytes.size());  // the most that it takes
  for (const char c : bytes) {
    const Spelled& spelled = kSpelled[static_cast<unsigned char>(c)];
    std::copy_n(spelled.text.begin(), 2, out.begin() + static_cast<std::ptrdiff_t>(at));
    at += spelled.bytes;
  }
  out.resize(at);
}

bool to_bytes(std::string_view text, std::string& bytes) {
  for (std::size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (c.code >= kCharToByte.size() || kCharToByte[c.code] < 0) return false;
    bytes += static_cast<char>(kCharToByte[c.code]);
    at += c.bytes;
  }
  return true;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

std::string byte_name(unsigned char byte) {
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">";
}

std::optional<unsigned char> byte_of_name(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || !name.ends_with('>')) return {};
  unsigned char byte = 0;
  const char* const end = name.data() + 5;
  const auto [stop, error] = std::from_chars(name.data() + 3, end, byte, 16);
  if (error != std::errc{} || stop != end) return {};
  return byte;
}

}  // namespace hyperrun

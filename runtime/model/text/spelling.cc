#include "runtime/model/text/spelling.h"

#include "runtime/base/utf8.h"
#include "runtime/model/text/byte_map.h"
#include "runtime/model/text/tokenizer.h"

namespace hyperrun {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) append_utf8(text, kByteToChar[static_cast<unsigned char>(c)]);
  return text;
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

std::string with_marks(std::string_view text) { return replaced(text, " ", kBlankMark); }
std::string without_marks(std::string_view text) { return replaced(text, kBlankMark, " "); }

std::string byte_name(unsigned char byte) {
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">";
}

std::optional<unsigned char> byte_of_name(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || !name.ends_with('>')) return {};
  const std::size_t high = kDigits.find(name[3]), low = kDigits.find(name[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return {};
  return static_cast<unsigned char>(high * 16 + low);
}

}  // namespace hyperrun

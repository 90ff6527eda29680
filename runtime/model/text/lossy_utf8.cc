#include "runtime/model/text/lossy_utf8.h"

#include <algorithm>

#include "runtime/base/utf8.h"

namespace hyperrun {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_between(char c, unsigned low, unsigned high) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= low && byte <= high;
}

// The bytes at the front of `text` that begin a character without completing it, or one byte that begins
// none. The second byte's range leaves out overlong forms, surrogates and what lies beyond U+10FFFF.
std::size_t broken_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0xC2 || lead > 0xF4) return 1;
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (text.size() < 2 || !is_between(text[1], low, high)) return 1;
  const std::size_t whole = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  std::size_t bytes = 2;
  while (bytes < std::min(whole, text.size()) && is_between(text[bytes], 0x80, 0xBF)) ++bytes;
  return bytes;
}

}  // namespace

std::string lossy_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t valid = find_invalid(bytes);
    text += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    text += kReplacement;
    bytes.remove_prefix(broken_bytes(bytes));
  }
  return text;
}

}  // namespace hyperrun

#include "runtime/base/utf8.h"

namespace hyperrun {
namespace {

// The length of the sequence that `lead` opens (0 when it opens none) and the bits that it carries.
struct Lead {
  std::size_t bytes;
  char32_t bits;
};
Lead lead_of(unsigned char lead) {
  if (lead < 0x80) return {1, lead};
  if (lead >= 0xC2 && lead < 0xE0) return {2, lead & 0x1Fu};
  if (lead >= 0xE0 && lead < 0xF0) return {3, lead & 0x0Fu};
  if (lead >= 0xF0 && lead < 0xF5) return {4, lead & 0x07u};
  return {0, 0};
}

bool well_formed(char32_t code, std::size_t bytes) {
  if (bytes == 3) return code >= 0x800 && (code < 0xD800 || code > 0xDFFF);
  if (bytes == 4) return code >= 0x10000 && code <= 0x10FFFF;
  return true;
}

}  // namespace

Char char_at(std::string_view text, std::size_t at) {
  const Lead lead = lead_of(static_cast<unsigned char>(text[at]));
  if (lead.bytes == 0 || lead.bytes > text.size() - at) return {kInvalid, 1};
  char32_t code = lead.bits;
  for (std::size_t i = 1; i < lead.bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xC0u) != 0x80u) return {kInvalid, 1};
    code = (code << 6) | (byte & 0x3Fu);
  }
  return well_formed(code, lead.bytes) ? Char{code, lead.bytes} : Char{kInvalid, 1};
}

void append_utf8(std::string& out, char32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80u | ((code >> shift) & 0x3Fu)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0u | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0u | (code >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0u | (code >> 18));
    tail(12), tail(6), tail(0);
  }
}

std::size_t find_invalid(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Char c = char_at(text, at);
    if (c.code == kInvalid) break;
    at += c.bytes;
  }
  return at;
}

bool is_utf8(std::string_view text) { return find_invalid(text) == text.size(); }

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t valid = find_invalid(text);
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    append_utf8(out, 0xFFFD);
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace hyperrun

#include "runtime/model/text/charsmap.h"

#include <utf8proc.h>

#include <array>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"

namespace hyperrun {
namespace {

constexpr std::size_t kLongestGrapheme = 5;  // bytes

Error damaged(const std::string& place, const char* what) {
  return Error(Code::kBadCheckpoint, std::string("no table of normalizations: ") + what).at(place);
}

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::string decoded(std::string_view base64, const std::string& place) {
  while (base64.ends_with('=')) base64.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : base64) {
    const int value = value_of(c);
    if (value < 0) throw damaged(place, "it is not base64");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

// A unit of darts-clone's double array: a node, or the value of one.
class Unit {
 public:
  explicit Unit(std::uint32_t bits) : bits_(bits) {}
  bool has_leaf() const { return (bits_ >> 8 & 1) != 0; }
  std::uint32_t value() const { return bits_ & 0x7FFFFFFFu; }
  std::uint32_t label() const { return bits_ & 0x800000FFu; }
  std::uint32_t offset() const { return bits_ >> 10 << ((bits_ & 1u << 9) >> 6); }

 private:
  std::uint32_t bits_;
};

// The bytes of the grapheme at the front of `text`.
std::size_t grapheme_bytes(std::string_view text) {
  Char before = char_at(text, 0);
  std::size_t at = before.bytes;
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    const Char c = char_at(text, at);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.code),
                                         static_cast<utf8proc_int32_t>(c.code), &state))
      break;
    before = c;
    at += c.bytes;
  }
  return at;
}

}  // namespace

Charsmap Charsmap::from_base64(std::string_view base64, const std::string& place) {
  const std::string bytes = decoded(base64, place);
  std::uint32_t trie = 0;
  if (bytes.size() < sizeof trie) throw damaged(place, "it ends too early");
  std::memcpy(&trie, bytes.data(), sizeof trie);
  if (trie == 0 || trie % 4 != 0 || trie > bytes.size() - sizeof trie)
    throw damaged(place, "its trie's size is not that of the data");
  std::vector<std::uint32_t> units(trie / 4);
  std::memcpy(units.data(), bytes.data() + sizeof trie, trie);
  return {std::move(units), bytes.substr(sizeof trie + trie)};
}

std::optional<std::string_view> Charsmap::replacement(std::string_view key) const {
  std::size_t node = Unit(units_[0]).offset();
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return {};
    node ^= byte;
    if (node >= units_.size() || Unit(units_[node]).label() != byte) return {};
    const Unit unit(units_[node]);
    node ^= unit.offset();
    if (!unit.has_leaf()) continue;
    const std::size_t at = node < units_.size() ? Unit(units_[node]).value() : replacements_.size();
    if (at >= replacements_.size()) return {};
    const std::string_view rest = std::string_view(replacements_).substr(at);
    return rest.substr(0, rest.find('\0'));
  }
  return {};
}

void Charsmap::apply(std::string& text) const {
  std::string out;
  out.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view grapheme = rest.substr(0, grapheme_bytes(rest));
    rest.remove_prefix(grapheme.size());
    if (grapheme.size() <= kLongestGrapheme)
      if (const auto whole = replacement(grapheme)) {
        out += *whole;
        continue;
      }
    for (; !grapheme.empty(); grapheme.remove_prefix(char_at(grapheme, 0).bytes)) {
      const std::string_view character = grapheme.substr(0, char_at(grapheme, 0).bytes);
      out += replacement(character).value_or(character);
    }
  }
  text = std::move(out);
}

}  // namespace hyperrun

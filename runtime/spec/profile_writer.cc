#include "runtime/spec/profile_writer.h"

#include <fmt/core.h>

#include <concepts>
#include <string_view>
#include <vector>

#include "runtime/spec/profile_fields.h"

namespace hyperrun {
namespace {

std::string in_quotes(std::string_view text) {
  static constexpr std::string_view kDigits = "01234567";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < ' ') {
      out += {'\\', kDigits[code >> 6], kDigits[code >> 3 & 7], kDigits[code & 7]};
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

std::string quantity(QuantityKind kind, double value) {
  return in_quotes(kind == QuantityKind::kNumber ? shortest(value) : format_quantity(kind, value));
}

std::string range_of(const Figure& f, QuantityKind kind) {
  if (!f.has_range()) return "";
  return " low: " + quantity(kind, f.low) + " high: " + quantity(kind, f.high) +
         " range_source: " + in_quotes(f.range_source);
}

// The visitor of profile_fields.h that writes a line for each figure, without defaults.
class ProfileEmitter {
 public:
  ProfileEmitter(std::string& out, std::string indent) : out_(out), indent_(std::move(indent)) {}

  void text(std::string_view name, const std::string& v, Need) { line(name, ": " + in_quotes(v)); }
  // Only numbers above 1 are written: units have more than one device, and the last level has no number.
  void integer(std::string_view name, std::int64_t v, Need, IntRange) {
    if (v > 1) line(name, fmt::format(": {}", v));
  }
  void flag(std::string_view name, bool v) {
    if (v) line(name, ": true");
  }
  void figure(std::string_view name, const Figure& f, QuantityKind kind, Need need, RealRange) {
    const bool given = f.evidence == Evidence::kGiven;
    if (given && need == Need::kOptional) return;
    const std::string_view evidence = hyperrun::name(given ? Evidence::kPlaceholder : f.evidence);
    const std::string source = given ? std::string(hyperrun::name(Evidence::kGiven)) : f.source;
    line(name, " { value: " + quantity(kind, f.value) + " evidence: " + in_quotes(evidence) +
                   " source: " + in_quotes(source) + range_of(f, kind) + " }");
  }

  template <class Block>
  void block(std::string_view name, Block& v, Need need) {
    if constexpr (std::equality_comparable<Block>)
      if (need == Need::kOptional && v == Block{}) return;
    std::string inner;
    ProfileEmitter emitter(inner, indent_ + "  ");
    fields(emitter, v);
    line(name, " {\n" + inner + indent_ + "}");
  }
  template <class Block>
  void list(std::string_view name, std::vector<Block>& v) {
    for (Block& one : v) block(name, one, Need::kRequired);
  }

 private:
  void line(std::string_view name, const std::string& rest) {
    out_ += indent_ + std::string(name) + rest + "\n";
  }

  std::string& out_;
  std::string indent_;
};

}  // namespace

std::string to_textproto(const Machine& machine) {
  Machine m = machine;  // a copy, because the visitor takes mutable members
  std::string text = "# proto-file: proto/supernode.proto\n# proto-message: hyperrun.proto.Profile\n";
  ProfileEmitter emitter(text, "");
  fields(emitter, m);
  return text;
}

}  // namespace hyperrun

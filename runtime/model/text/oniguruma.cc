#include "runtime/model/text/oniguruma.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/text/char_names.h"

namespace hyperrun {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::string bracketed(std::string_view set, bool negated) {
  return fmt::format("[{}{}]", negated ? "^" : "", set);
}

// What a class in brackets has: `flat` may stand within brackets of PCRE2; each of `sets` is an expression
// for one character.
struct CharUnion {
  std::string flat;
  std::vector<std::string> sets;

  std::string expression() const {
    std::string text = flat.empty() ? "" : bracketed(flat, false);
    for (const std::string& set : sets) text += (text.empty() ? "" : "|") + set;
    if (text.empty()) return "(?!)";
    return sets.size() + !flat.empty() == 1 ? text : "(?:" + text + ")";
  }
};

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& place) : in_(pattern), place_(place) {}

  std::string translate() {
    body();
    if (at_ < in_.size()) refuse("a bracket \")\" that nothing opens");
    return std::move(out_);
  }

 private:
  // The alternatives of a group, up to its end.
  void body();
  void group();
  void options(std::string_view letters, int& opened);
  void quantifier(std::size_t atom);
  void escape();
  std::string char_class();
  void class_escape(CharUnion& chars);
  void refuse_cases(std::string_view set) const;
  void posix_set(CharUnion& chars);

  // The set of a letter such as s in \s; empty where it names none.
  static std::string set_of_escape(char letter);
  std::string property(bool& negated);
  std::string code_point();
  void copy_char(std::string& out);

  bool ahead(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!ahead(text)) return false;
    at_ += text.size();
    return true;
  }
  // What stands before `end`, which is taken too.
  std::string_view take_until(char end) {
    const std::size_t found = in_.find(end, at_);
    if (found == std::string_view::npos) refuse(fmt::format("\"{}\" is missing", end));
    const std::string_view text = in_.substr(at_, found - at_);
    at_ = found + 1;
    return text;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Code::kBadCheckpoint,
                fmt::format("the regular expression has what is not supported: {} (byte {})", what, at_))
        .at(place_)
        .legal("Oniguruma's syntax without callouts, absent groups and text segments");
  }

  std::string_view in_;
  const std::string& place_;
  std::size_t at_ = 0;
  std::string out_;
  bool ignores_case_ = false;
};

void Translator::copy_char(std::string& out) {
  const std::size_t bytes = char_at(in_, at_).bytes;
  out += in_.substr(at_, bytes);
  at_ += bytes;
}

void Translator::body() {
  const bool ignored_case = ignores_case_;
  int opened = 0;        // groups that options without brackets have opened
  std::size_t atom = 0;  // where in out_ what a quantifier repeats begins
  while (at_ < in_.size() && in_[at_] != ')') {
    const char c = in_[at_];
    if (c == '*' || c == '+' || c == '?' || c == '{') {
      quantifier(atom);
      continue;
    }
    atom = out_.size();
    if (c == '\\') {
      escape();
    } else if (c == '[') {
      out_ += char_class();
    } else if (c == '(') {
      const std::size_t letters = at_ + 2, end = in_.find_first_not_of("imx-", letters);
      if (ahead("(?") && end != letters && end != std::string_view::npos && in_[end] == ')')
        at_ = end + 1, options(in_.substr(letters, end - letters), opened);
      else
        group();
    } else {
      copy_char(out_);
    }
  }
  out_.append(static_cast<std::size_t>(opened), ')');
  ignores_case_ = ignored_case;
}

// Opens a group with options of Ruby, of which m is s in PCRE2.
void Translator::options(std::string_view letters, int& opened) {
  if (letters.find('x') != std::string_view::npos) refuse("the option x");
  std::string own(letters);
  std::ranges::replace(own, 'm', 's');
  if (const std::size_t i = own.find('i'); i != std::string::npos) ignores_case_ = own.find('-') > i;
  out_ += "(?" + own + ":";
  ++opened;
}

void Translator::group() {
  const bool ignored_case = ignores_case_;
  int opened = 0;
  ++at_;
  if (ahead("*")) refuse("a callout");
  if (!take("?")) {
    out_ += '(';
  } else if (take("#")) {
    take_until(')');
    return;
  } else if (ahead("<=") || ahead("<!") || ahead(":") || ahead("=") || ahead("!") || ahead(">")) {
    out_ += "(?";
    if (ahead("<")) copy_char(out_);
    copy_char(out_);
  } else if (take("<")) {
    out_ += fmt::format("(?<{}>", take_until('>'));
  } else {
    const std::size_t end = in_.find_first_not_of("imx-", at_);
    if (end == std::string_view::npos || in_[end] != ':') refuse("a group that begins with \"(?\"");
    const std::string_view letters = in_.substr(at_, end - at_);
    at_ = end + 1;
    options(letters, opened);
  }
  body();
  if (!take(")")) refuse("a group that does not end");
  out_ += ')';
  ignores_case_ = ignored_case;
}

void Translator::quantifier(std::size_t atom) {
  if (in_[at_] != '{') {
    copy_char(out_);
    if (ahead("?") || ahead("+")) copy_char(out_);
    return;
  }
  std::size_t end = at_ + 1;
  while (end < in_.size() && (is_digit(in_[end]) || in_[end] == ',')) ++end;
  const std::string_view bounds = in_.substr(at_ + 1, end - at_ - 1);
  const bool is_interval = end < in_.size() && in_[end] == '}' && bounds.size() > 0 && bounds != "," &&
                           std::ranges::count(bounds, ',') <= 1;
  if (!is_interval) {
    out_ += "\\{";
    ++at_;
    return;
  }
  at_ = end + 1;
  const std::string interval = fmt::format("{{{}{}}}", bounds.starts_with(',') ? "0" : "", bounds);
  const bool fixed = bounds.find(',') == std::string_view::npos;
  if (!ahead("+") && !(fixed && ahead("?"))) {
    out_ += interval;
    if (ahead("?")) copy_char(out_);
    return;
  }
  out_.insert(atom, "(?:");
  out_ += interval + ")";
}

std::string Translator::set_of_escape(char letter) {
  switch (std::tolower(static_cast<unsigned char>(letter))) {
    case 's': return std::string(kWhiteSpace);
    case 'w': return word_characters();
    case 'd': return set_of_property("Nd");
    case 'h': return std::string(kHexDigits);
    default: return {};
  }
}

// Reads {NAME} or {^NAME} of a property.
std::string Translator::property(bool& negated) {
  if (!take("{")) refuse("a property without {}");
  if (take("^")) negated = !negated;
  const std::string_view name = take_until('}');
  if (name.empty() ||
      !std::ranges::all_of(name, [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == ' '; }))
    refuse(fmt::format("the property \"{}\"", name));
  return set_of_property(name);
}

// Reads what follows \x or \u.
std::string Translator::code_point() {
  const bool four = in_[at_ - 1] == 'u';
  if (!four && take("{")) return fmt::format("\\x{{{}}}", take_until('}'));
  std::size_t end = at_;
  while (end < in_.size() && end < at_ + (four ? 4 : 2) && is_hex(in_[end])) ++end;
  const std::string_view digits = in_.substr(at_, end - at_);
  if (four ? digits.size() != 4 : digits.empty()) refuse("a code point without digits");
  // A single byte above 7F would be a part of a character.
  if (digits.size() == 2 && digits[0] >= '8') refuse("a byte of a character");
  at_ = end;
  return fmt::format("\\x{{{}}}", digits);
}

void Translator::escape() {
  ++at_;
  if (at_ == in_.size()) refuse("a \"\\\" at the end");
  const char c = in_[at_];
  if (const std::string set = set_of_escape(c); !set.empty()) {
    const bool is_word = c == 'w' || c == 'W';
    out_ += bracketed(set + std::string(is_word ? kLatinNumbers : ""),
                      std::isupper(static_cast<unsigned char>(c)) != 0);
    ++at_;
  } else if (take("p") || take("P")) {
    bool negated = c == 'P';
    const std::string named = property(negated);
    out_ += bracketed(named + std::string(named == word_characters() ? kLatinNumbers : ""), negated);
  } else if (take("x") || take("u")) {
    out_ += code_point();
  } else if (take("v")) {
    out_ += "\\x0b";
  } else if (take("O")) {
    out_ += "(?s:.)";
  } else if (take("N")) {
    out_ += "[^\\n]";
  } else if (take("b") || take("B")) {
    const std::string word = bracketed(word_characters() + std::string(kLatinNumbers), false);
    const char* const form =
        c == 'b' ? "(?:(?<={0})(?!{0})|(?<!{0})(?={0}))" : "(?:(?<={0})(?={0})|(?<!{0})(?!{0}))";
    out_ += fmt::format(fmt::runtime(form), word);
  } else if (std::isalpha(static_cast<unsigned char>(c)) &&
             std::string_view("aefnrtAzZGKRXkg").find(c) == std::string_view::npos) {
    refuse(fmt::format("\\{}", c));
  } else {
    if (static_cast<unsigned char>(c) < 0x80) out_ += '\\';
    copy_char(out_);
  }
}

// In brackets, where case does not count, Oniguruma adds the other case to a set; PCRE2 does not.
void Translator::refuse_cases(std::string_view set) const {
  for (const std::string_view cased : {"\\p{Lu}", "\\p{Ll}", "\\p{Lt}", "\\p{Uppercase}", "\\p{Lowercase}"})
    if (ignores_case_ && set.starts_with(cased)) refuse("a set of one case where case does not count");
}

void Translator::class_escape(CharUnion& chars) {
  ++at_;
  if (at_ == in_.size()) refuse("a class that does not end");
  const char c = in_[at_];
  const auto add = [&](std::string_view set, bool negated) {
    if (negated)
      chars.sets.push_back(bracketed(set, true));
    else
      chars.flat += set;
  };
  if (const std::string set = set_of_escape(c); !set.empty()) {
    add(set, std::isupper(static_cast<unsigned char>(c)) != 0);
    ++at_;
  } else if (take("p") || take("P")) {
    bool negated = c == 'P';
    const std::string named = property(negated);
    refuse_cases(named);
    add(named, negated);
  } else if (take("x") || take("u")) {
    chars.flat += code_point();
  } else if (take("v")) {
    chars.flat += "\\x0b";
  } else if (std::isalpha(static_cast<unsigned char>(c)) &&
             std::string_view("abefnrt").find(c) == std::string_view::npos) {
    refuse(fmt::format("\\{} in a class", c));
  } else {
    if (static_cast<unsigned char>(c) < 0x80) chars.flat += '\\';
    copy_char(chars.flat);
  }
}

// Reads [:name:] or [:^name:].
void Translator::posix_set(CharUnion& chars) {
  at_ += 2;
  const bool negated = take("^");
  const std::string set = set_of_posix_name(take_until(':'));
  refuse_cases(set);
  if (!take("]")) refuse("a set of POSIX that does not end");
  if (negated)
    chars.sets.push_back(bracketed(set, true));
  else
    chars.flat += set;
}

// Reads a class in brackets; returns an expression for one character.
std::string Translator::char_class() {
  ++at_;
  const bool negated = take("^");
  std::vector<CharUnion> parts(1);  // the class is what they have in common
  for (bool first = true;; first = false) {
    if (at_ == in_.size()) refuse("a class that does not end");
    CharUnion& chars = parts.back();
    if (!first && take("]")) break;
    if (take("&&")) {
      parts.emplace_back();
    } else if (ahead("[:")) {
      posix_set(chars);
    } else if (ahead("[")) {
      chars.sets.push_back(char_class());
    } else if (ahead("\\")) {
      class_escape(chars);
    } else if (first && take("]")) {
      chars.flat += "\\]";
    } else {
      copy_char(chars.flat);
    }
  }
  if (parts.size() == 1 && parts[0].sets.empty()) return bracketed(parts[0].flat, negated);
  std::string whole;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) whole += "(?=" + parts[i].expression() + ")";
  whole += parts.back().expression();
  return negated ? "(?:(?!" + whole + ")(?s:.))" : "(?:" + whole + ")";
}

}  // namespace

std::string oniguruma_to_pcre2(std::string_view pattern, const std::string& place) {
  return Translator(pattern, place).translate();
}

}  // namespace hyperrun

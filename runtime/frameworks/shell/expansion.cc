#include "runtime/frameworks/shell/expansion.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "runtime/base/error.h"
#include "runtime/frameworks/shell/arithmetic.h"

namespace hyperrun::shell {
namespace {

constexpr std::size_t kLongest = 8 << 20;
constexpr std::int64_t kMostText = std::int64_t{1} << 31;
constexpr int kDeepest = 100;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

std::optional<std::int64_t> whole(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  std::int64_t v = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (fault != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return v;
}

// The end of a mark at text[i].
std::size_t end_of_mark(const std::string& text, std::size_t i) {
  const std::size_t end = text.find(kMarkEnd, i);
  return end == std::string::npos ? text.size() : end + 1;
}

}  // namespace

bool matches_glob(std::string_view text, std::string_view glob) {
  return text.size() < 4096 && glob.size() < 4096 &&
         fnmatch(std::string(glob).c_str(), std::string(text).c_str(), 0) == 0;
}

// The fields that a word has become so far, and the one that is being made.
struct Expander::Field {
  std::vector<Text> done;
  Text current;
  bool is_there = false;  // false: no field unless a character follows

  void add(const Text& text, bool quoted) {
    if (quoted) {
      current.add(text);
      is_there = true;
      return;
    }
    for (std::size_t i = 0; i < text.size();) {
      if (is_space(text.chars[i])) {
        end();
        ++i;
        continue;
      }
      std::size_t next = i;
      while (next < text.size() && !is_space(text.chars[next]))
        next = text.chars[next] == kMarkBegin ? end_of_mark(text.chars, next) : next + 1;
      current.add(text.part(i, next));
      is_there = true;
      i = next;
    }
  }
  void add(char c, std::uint32_t place) { current.add(c, place), is_there = true; }
  void end() {
    if (is_there) done.push_back(std::move(current));
    current = {}, is_there = false;
  }
};

std::vector<Text> Expander::fields(const Word& word) {
  Field field;
  expand(word.text, false, field);
  field.end();
  return std::move(field.done);
}

Text Expander::text(const Text& word) {
  Field field;
  expand(word, true, field);
  for (const Text& earlier : field.done) {
    Text all = earlier;
    all.add(" ", 0);
    all.add(field.current);
    field.current = std::move(all);
  }
  return std::move(field.current);
}

// `quoted` says that values are not divided into fields. Quotes of the word itself count in both cases.
void Expander::expand(const Text& word, bool quoted, Field& out) {
  if (++depth_ > kDeepest)
    throw Error(Code::kSyntax, "expansions nested too deeply")
        .at(sources_.place(word.places.empty() ? 0 : word.places[0]));
  const std::string& s = word.chars;
  for (std::size_t i = 0; i < s.size();) {
    switch (s[i]) {
      case '\\':
        if (i + 1 < s.size() && s[i + 1] != '\n') out.add(s[i + 1], word.places[i + 1]);
        i += 2;
        break;
      case '\'': {
        const std::size_t end = std::min(s.find('\'', i + 1), s.size());
        out.add(word.part(i + 1, end), true);
        i = end + 1;
        break;
      }
      case '"': {
        const std::size_t end = end_of_quoted(word, i, sources_);
        out.is_there = true;
        expand_double_quotes(word.part(i + 1, end - 1), out);
        i = end;
        break;
      }
      case '`': {
        const std::size_t end = end_of_quoted(word, i, sources_);
        expand_substitution(word.part(i + 1, end - 1), word.places[i], quoted, out);
        i = end;
        break;
      }
      case '$': expand_dollar(word, i, quoted, out); break;
      case kMarkBegin: {
        const std::size_t end = end_of_mark(s, i);
        out.add(word.part(i, end), true);
        i = end;
        break;
      }
      default: out.add(s[i], word.places[i]), ++i;
    }
  }
  --depth_;
}

void Expander::expand_double_quotes(const Text& inner, Field& out) {
  const std::string& s = inner.chars;
  for (std::size_t i = 0; i < s.size();) {
    const bool escapes = s[i] == '\\' && i + 1 < s.size();
    if (escapes && s[i + 1] == '\n') {
      i += 2;
    } else if (escapes && (s[i + 1] == '$' || s[i + 1] == '"' || s[i + 1] == '\\' || s[i + 1] == '`')) {
      out.add(s[i + 1], inner.places[i + 1]);
      i += 2;
    } else if (s[i] == '$') {
      expand_dollar(inner, i, true, out);
    } else if (s[i] == '`') {
      const std::size_t end = end_of_quoted(inner, i, sources_);
      expand_substitution(inner.part(i + 1, end - 1), inner.places[i], true, out);
      i = end;
    } else {
      out.add(s[i], inner.places[i]);
      ++i;
    }
  }
}

// Expands what begins at word[i] with "$", and moves i behind it.
void Expander::expand_dollar(const Text& word, std::size_t& i, bool quoted, Field& out) {
  const std::string& s = word.chars;
  const std::uint32_t place = word.places[i];
  const char next = i + 1 < s.size() ? s[i + 1] : '\0';
  if (next == '\'') {
    const std::size_t end = end_of_quoted(word, i, sources_);
    out.add(word.part(i + 2, end - 1), true);
    i = end;
  } else if (next == '(' || next == '{') {
    const std::size_t end = end_of_quoted(word, i, sources_);
    if (s.compare(i, 3, "$((") == 0 && s.compare(end - 2, 2, "))") == 0)
      out.add(arithmetic(word.part(i + 3, end - 2), place), quoted);
    else if (next == '(')
      expand_substitution(word.part(i + 2, end - 1), place, quoted, out);
    else
      expand_braces(word.part(i + 2, end - 1), place, quoted, out);
    i = end;
  } else if (is_name_char(next, true)) {
    std::size_t end = i + 1;
    while (end < s.size() && is_name_char(s[end], false)) ++end;
    add_value(s.substr(i + 1, end - i - 1), place, quoted, out);
    i = end;
  } else if (next == '@' || next == '*') {
    add_elements(variables_.arguments, next == '@', quoted, out);
    i += 2;
  } else if (next != '\0' && std::string_view("0123456789#?$!-").find(next) != std::string_view::npos) {
    out.add(special(next, place), quoted);
    i += 2;
  } else {
    out.add('$', place);
    ++i;
  }
}

Text Expander::special(char c, std::uint32_t place) {
  Text t;
  const std::string name(1, c);
  if (c == '#')
    t.add(std::to_string(variables_.arguments.size()), place);
  else if (c == '0')
    t.add(variables_.script, place);
  else if (c == '?')
    t.add("0", place);
  else if (c < '1' || c > '9')
    t.add(sources_.mark("$" + name), place);
  else
    return value_of(name, place);
  return t;
}

bool Expander::is_set(const std::string& name) const {
  if (name.size() == 1 && name[0] >= '1' && name[0] <= '9')
    return static_cast<std::size_t>(name[0] - '0') <= variables_.arguments.size();
  const Variable* v = variables_.find(name);
  return v != nullptr && !(v->elements.empty() && v->named.empty()) &&
         (v->elements.empty() || !is_mark(v->elements[0].chars));
}

Text Expander::value_of(const std::string& name, std::uint32_t place) {
  if (name.size() == 1 && name[0] >= '0' && name[0] <= '9') {
    const auto n = static_cast<std::size_t>(name[0] - '0');
    if (n >= 1 && n <= variables_.arguments.size()) return variables_.arguments[n - 1];
    Text t;
    if (!variables_.arguments_known) t.add(sources_.mark("$" + name), place);
    return t;
  }
  const Variable* v = variables_.find(name);
  if (v != nullptr) return v->elements.empty() ? Text{} : v->elements.front();
  Text t;
  t.add(sources_.mark("$" + name), place);
  return t;
}

std::vector<Text> Expander::elements_of(const std::string& name) const {
  if (name == "@" || name == "*") return variables_.arguments;
  const Variable* v = variables_.find(name);
  if (v == nullptr) return {};
  std::vector<Text> list = v->elements;
  for (const auto& [key, value] : v->named) list.push_back(value);
  return list;
}

Text Expander::element_of(const std::string& name, const std::string& index, std::uint32_t place) {
  const Variable* v = variables_.find(name);
  if (v == nullptr) return value_of(name, place);
  if (const auto at = v->named.find(index); at != v->named.end()) return at->second;
  Text expression;
  expression.add(index, place);
  const auto n = whole(arithmetic(expression, place).chars);
  if (!n) return {};
  const auto size = static_cast<std::int64_t>(v->elements.size());
  const std::int64_t at = *n < 0 ? *n + size : *n;
  return at >= 0 && at < size ? v->elements[static_cast<std::size_t>(at)] : Text{};
}

void Expander::add_value(const std::string& name, std::uint32_t place, bool quoted, Field& out) {
  Text value = value_of(name, place);
  total_ += static_cast<std::int64_t>(value.size());
  if (value.size() + out.current.size() > kLongest || total_ > kMostText)
    throw Error(Code::kSyntax, fmt::format("${} becomes too long", name))
        .at(sources_.place(place))
        .legal(fmt::format("values of up to {} bytes", kLongest))
        .fix("see whether the script doubles a variable in a loop");
  out.add(value, quoted);
}

void Expander::add_elements(const std::vector<Text>& elements, bool each, bool quoted, Field& out) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    total_ += static_cast<std::int64_t>(elements[i].size());
    out.add(elements[i], quoted);
    if (i + 1 == elements.size()) continue;
    if (each || !quoted)
      out.end();
    else
      out.add(' ', elements[i].places.empty() ? 0 : elements[i].places.back());
  }
}

// ${NAME}, ${#NAME}, ${NAME[i]}, ${NAME[@]}, ${!NAME}, and operations behind a name.
void Expander::expand_braces(const Text& inner, std::uint32_t place, bool quoted, Field& out) {
  const std::string& s = inner.chars;
  std::size_t i = 0;
  const bool counts = s.size() > 1 && s[0] == '#', indirect = s.size() > 1 && s[0] == '!';
  if (counts || indirect) ++i;
  const std::size_t begin = i;
  if (i < s.size() && is_name_char(s[i], true))
    while (i < s.size() && is_name_char(s[i], false)) ++i;
  else
    while (i < s.size() && (i == begin || (s[begin] >= '0' && s[begin] <= '9' && s[i] >= '0' && s[i] <= '9')))
      ++i;
  std::string name = s.substr(begin, i - begin);
  std::optional<std::string> index;
  if (i < s.size() && s[i] == '[') {
    const std::size_t close = s.find(']', i);
    if (close != std::string::npos) {
      index = text(inner.part(i + 1, close)).chars;
      i = close + 1;
    }
  }
  const bool all = (index && (*index == "@" || *index == "*")) || name == "@" || name == "*";
  if (counts) {
    Text n;
    n.add(std::to_string(all ? elements_of(name).size() : value_of(name, place).size()), place);
    return out.add(n, quoted);
  }
  if (indirect && !all) name = value_of(name, place).chars;
  if (i == s.size()) {
    if (all) return add_elements(elements_of(name), !index || *index == "@", quoted, out);
    if (index) return out.add(element_of(name, *index, place), quoted);
    return add_value(name, place, quoted, out);
  }
  std::size_t end = i + 1;
  if (s[i] == ':' && end < s.size() && std::string_view("-=+?").find(s[end]) != std::string_view::npos) ++end;
  for (const char twice : {'#', '%', '/', '^', ','})
    if (s[i] == twice && end < s.size() && s[end] == twice) ++end;
  const std::string operation = s.substr(i, end - i);
  const Text argument = inner.part(end, s.size());
  const char kind = operation.back();
  if (all) {
    const std::vector<Text> elements = elements_of(name);
    if ((kind == '-' && elements.empty()) || (kind == '+' && !elements.empty()))
      return expand(argument, quoted, out);
    return add_elements(kind == '+' ? std::vector<Text>{} : elements, true, quoted, out);
  }
  const Text value = index ? element_of(name, *index, place) : value_of(name, place);
  const bool given = is_set(name) && (operation.size() == 1 || !value.empty());
  if (operation == "-" || operation == ":-")
    return given ? out.add(value, quoted) : expand(argument, quoted, out);
  if (operation == "+" || operation == ":+") return given ? expand(argument, quoted, out) : void();
  if (operation == "=" || operation == ":=") {
    if (!given) variables_.set(name, text(argument));
    return out.add(value_of(name, place), quoted);
  }
  if (operation == "?" || operation == ":?") return out.add(value, quoted);
  out.add(changed(value, operation, argument), quoted);
}

// The value without a prefix or suffix, with a part replaced, in other letters, or a part of it.
Text Expander::changed(const Text& value, std::string_view operation, const Text& argument) {
  if (has_mark(value.chars)) return value;
  const std::size_t size = value.size();
  const bool longest = operation.size() == 2;
  if (operation[0] == '%' || operation[0] == '#') {
    const std::string glob = text(argument).chars;
    for (std::size_t n = 0; n <= size; ++n) {
      const std::size_t length = longest ? size - n : n;
      const std::size_t at = operation[0] == '%' ? size - length : 0;
      if (!matches_glob(std::string_view(value.chars).substr(at, length), glob)) continue;
      return operation[0] == '%' ? value.part(0, at) : value.part(length, size);
    }
    return value;
  }
  if (operation[0] == '^' || operation[0] == ',') {
    Text t = value;
    for (std::size_t i = 0; i < (longest ? size : std::min<std::size_t>(size, 1)); ++i)
      t.chars[i] =
          static_cast<char>(operation[0] == '^' ? std::toupper(static_cast<unsigned char>(t.chars[i]))
                                                : std::tolower(static_cast<unsigned char>(t.chars[i])));
    return t;
  }
  if (operation[0] == '/') {
    const std::size_t slash = argument.chars.find('/');
    const std::string from = text(argument.part(0, std::min(slash, argument.size()))).chars;
    const Text to = slash == std::string::npos ? Text{} : text(argument.part(slash + 1, argument.size()));
    Text t;
    for (std::size_t i = 0; i < size;) {
      const bool here =
          !from.empty() && value.chars.compare(i, from.size(), from) == 0 && (longest || t.chars.size() == i);
      if (!here) {
        t.add(value.chars[i], value.places[i]), ++i;
        continue;
      }
      t.add(to), i += from.size();
      if (!longest) return t.add(value.part(i, size)), t;
    }
    return t;
  }
  if (operation[0] == ':') {
    const std::size_t colon = argument.chars.find(':');
    const auto from = whole(text(argument.part(0, std::min(colon, argument.size()))).chars);
    const auto count = colon == std::string::npos
                           ? std::optional<std::int64_t>(static_cast<std::int64_t>(size))
                           : whole(text(argument.part(colon + 1, argument.size())).chars);
    if (!from || !count) return value;
    const auto begin = static_cast<std::size_t>(std::clamp<std::int64_t>(
        *from < 0 ? *from + static_cast<std::int64_t>(size) : *from, 0, static_cast<std::int64_t>(size)));
    const auto end = static_cast<std::size_t>(std::clamp<std::int64_t>(
        *count < 0 ? static_cast<std::int64_t>(size) + *count : static_cast<std::int64_t>(begin) + *count,
        static_cast<std::int64_t>(begin), static_cast<std::int64_t>(size)));
    return value.part(begin, end);
  }
  return value;
}

Text Expander::arithmetic(const Text& expression, std::uint32_t place) {
  const Text plain = text(expression);
  const auto value_of_name = [&](const std::string& name) -> std::optional<std::int64_t> {
    std::string value = value_of(name, place).chars;
    for (int hops = 0; hops < 8; ++hops) {
      if (value.empty()) return 0;
      if (const auto n = whole(value)) return n;
      const Variable* next = variables_.find(value);
      if (next == nullptr || next->elements.empty()) return std::nullopt;
      value = next->elements.front().chars;
    }
    return std::nullopt;
  };
  const auto assign = [&](const std::string& name, std::int64_t v) {
    Text t;
    t.add(std::to_string(v), place);
    variables_.set(name, std::move(t));
  };
  const ArithmeticResult result = evaluate(plain.chars, {value_of_name, assign});
  if (!result.fault.empty())
    throw Error(Code::kSyntax,
                fmt::format("in $(({})): {}", without_marks(plain.chars).substr(0, 80), result.fault))
        .at(sources_.place(place))
        .legal("whole numbers, variables, + - * / % ** ( ) comparisons and ? :")
        .fix("correct the expression");
  Text t;
  t.add(result.value ? std::to_string(*result.value)
                     : sources_.mark("$((" + without_marks(plain.chars).substr(0, 60) + "))"),
        place);
  return t;
}

std::optional<bool> Expander::truth(const Text& expression) {
  const std::uint32_t place = expression.places.empty() ? 0 : expression.places.front();
  const auto n = whole(arithmetic(expression, place).chars);
  if (!n) return std::nullopt;
  return *n != 0;
}

void Expander::expand_substitution(const Text& command, std::uint32_t place, bool quoted, Field& out) {
  Text t;
  t.add(substituted(command), place);
  out.add(t, quoted);
}

// The output of commands that need nothing but their arguments; a mark for all others.
std::string Expander::substituted(const Text& command) {
  const std::string unknown = sources_.mark("$(" + without_marks(command.chars).substr(0, 40) + ")");
  const Commands list = parse(command, sources_);
  if (list.size() != 1 || list[0].kind != CommandKind::kSimple || list[0].words.empty()) return unknown;
  std::vector<std::string> words;
  for (const Word& w : list[0].words)
    for (const Text& f : fields(w)) words.push_back(f.chars);
  if (words.size() < 2) return unknown;
  for (const std::string& w : words)
    if (has_mark(w)) return unknown;
  if (words[0] == "echo") {
    std::string text = words[1];
    for (std::size_t i = 2; i < words.size(); ++i) text += " " + words[i];
    return text;
  }
  if (words[0] == "basename" || words[0] == "dirname") {
    const std::size_t slash = words[1].rfind('/');
    if (words[0] == "basename") return words[1].substr(slash == std::string::npos ? 0 : slash + 1);
    return slash == std::string::npos ? "." : words[1].substr(0, slash);
  }
  if (words[0] == "expr") {
    std::string expression;
    for (std::size_t i = 1; i < words.size(); ++i) expression += words[i] + " ";
    const ArithmeticResult result =
        evaluate(expression, {[](const std::string&) { return std::optional<std::int64_t>(); },
                              [](const std::string&, std::int64_t) {}});
    if (result.value) return std::to_string(*result.value);
  }
  return unknown;
}

}  // namespace hyperrun::shell

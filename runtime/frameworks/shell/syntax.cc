#include "runtime/frameworks/shell/syntax.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun::shell {
namespace {

constexpr int kDeepest = 200;

class Parser {
 public:
  Parser(const Text& text, const Sources& sources) : text_(text), s_(text.chars), sources_(sources) {}

  Commands all() {
    Commands list = commands({});
    if (i_ < s_.size()) throw error(i_, fmt::format("\"{}\" closes nothing", at_word()));
    return list;
  }

 private:
  using Words = std::vector<std::string_view>;

  Error error(std::size_t at, const std::string& cause) const {
    const std::uint32_t place = text_.places.empty() ? 0 : text_.places[std::min(at, s_.size() - 1)];
    return Error(Code::kSyntax, cause)
        .at(sources_.place(place))
        .legal("a script that bash takes")
        .fix("see what bash -n says of it");
  }
  std::uint32_t place() const { return i_ < s_.size() ? text_.places[i_] : 0; }
  bool at(std::string_view token) const { return s_.compare(i_, token.size(), token) == 0; }
  bool take(std::string_view token) {
    if (!at(token)) return false;
    i_ += token.size();
    return true;
  }

  // Skips blanks, line continuations and comments, but no end of line.
  void skip_blanks() {
    while (i_ < s_.size()) {
      if (s_[i_] == ' ' || s_[i_] == '\t')
        ++i_;
      else if (at("\\\n"))
        i_ += 2;
      else if (s_[i_] == '#' && (i_ == 0 || is_break(s_[i_ - 1])))
        while (i_ < s_.size() && s_[i_] != '\n') ++i_;
      else
        return;
    }
  }
  void skip_lines() {
    for (skip_blanks(); i_ < s_.size() && (s_[i_] == '\n' || (s_[i_] == ';' && !at(";;"))); skip_blanks())
      if (s_[i_++] == '\n') skip_here_documents();
  }
  static bool is_break(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')';
  }

  // The text of a here-document is input of a command, and no part of the script.
  void skip_here_documents() {
    for (const auto& [end, indented] : here_documents_)
      while (i_ < s_.size()) {
        const std::size_t line_end = std::min(s_.find('\n', i_), s_.size());
        std::string_view line(s_.data() + i_, line_end - i_);
        if (indented) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
        i_ = std::min(line_end + 1, s_.size());
        if (line == end) break;
      }
    here_documents_.clear();
  }

  // The letters at the current place, for reserved words and messages.
  std::string_view at_word() const {
    std::size_t end = i_;
    while (end < s_.size() && !is_break(s_[end])) ++end;
    return std::string_view(s_).substr(i_, std::max<std::size_t>(end - i_, 1));
  }
  bool at_reserved(std::string_view word) const {
    return at(word) && (i_ + word.size() == s_.size() || is_break(s_[i_ + word.size()]));
  }
  bool at_any(const Words& words) const {
    return std::ranges::any_of(
        words, [&](std::string_view w) { return w == ")" || w == ";;" ? at(w) : at_reserved(w); });
  }

  Commands commands(const Words& ends) {
    if (++depth_ > kDeepest) throw error(i_, fmt::format("nested deeper than {}", kDeepest));
    Commands list;
    for (skip_lines(); i_ < s_.size() && !at_any(ends); skip_lines()) {
      static const Words kStray{"fi", "done", "esac", "then", "elif", "else", "do", "}", ")", ";;"};
      if (at_any(kStray)) break;
      list.push_back(command());
      connect(list.back());
    }
    --depth_;
    return list;
  }

  void connect(Command& c) {
    skip_blanks();
    if (take("&&"))
      c.then = Then::kIfDone;
    else if (take("||"))
      c.then = Then::kUnlessDone;
    else if (take("|&") || take("|"))
      c.then = Then::kPipe;
    else if (!at(";;") && !take(";"))
      take("&");
    if (c.then != Then::kNext) skip_lines();
  }

  void require(std::string_view word, std::size_t opened, std::string_view what) {
    skip_lines();
    if (!at_reserved(word)) throw error(opened, fmt::format("\"{}\" without \"{}\"", what, word));
    i_ += word.size();
  }

  Command command() {
    const std::size_t begin = i_;
    Command c;
    c.place = place();
    if (at_reserved("!"))
      ++i_, skip_blanks(), c = command(), c.negated = !c.negated;
    else if (at_reserved("if"))
      i_ += 2, parse_if(c, begin);
    else if (at_reserved("while") || at_reserved("until"))
      parse_loop(c, begin);
    else if (at_reserved("for"))
      i_ += 3, parse_for(c, begin);
    else if (at_reserved("case"))
      i_ += 4, parse_case(c, begin);
    else if (at_reserved("function"))
      i_ += 8, parse_function(c, begin);
    else if (at_reserved("[["))
      i_ += 2, parse_test(c, begin);
    else if (at("(("))
      parse_arithmetic(c);
    else if (at("("))
      ++i_, parse_group(c, begin, ")");
    else if (at_reserved("{"))
      ++i_, parse_group(c, begin, "}");
    else if (at_definition())
      parse_function(c, begin);
    else
      parse_simple(c);
    if (c.kind != CommandKind::kSimple) skip_redirections();
    return c;
  }

  void parse_if(Command& c, std::size_t begin) {
    c.kind = CommandKind::kIf;
    do {
      Clause clause;
      clause.condition = commands({"then"});
      require("then", begin, "if");
      clause.body = commands({"elif", "else", "fi"});
      c.clauses.push_back(std::move(clause));
    } while (at_reserved("elif") && take("elif"));
    if (at_reserved("else") && take("else")) c.clauses.push_back({{}, {}, commands({"fi"})});
    require("fi", begin, "if");
  }

  void parse_body(Command& c, std::size_t begin, std::string_view what, Clause clause) {
    require("do", begin, what);
    clause.body = commands({"done"});
    require("done", begin, what);
    c.clauses.push_back(std::move(clause));
  }

  void parse_loop(Command& c, std::size_t begin) {
    c.kind = CommandKind::kLoop;
    c.until = at("until");
    i_ += 5;
    Clause clause;
    clause.condition = commands({"do"});
    parse_body(c, begin, c.until ? "until" : "while", std::move(clause));
  }

  void parse_for(Command& c, std::size_t begin) {
    skip_blanks();
    if (at("((")) {
      parse_arithmetic(c);
      c.kind = CommandKind::kCountedFor;
      skip_lines();
      return parse_body(c, begin, "for", {});
    }
    c.kind = CommandKind::kFor;
    while (i_ < s_.size() && is_name_char(s_[i_], c.name.empty())) c.name += s_[i_++];
    if (c.name.empty()) throw error(begin, "\"for\" without a variable");
    skip_lines();
    if (at_reserved("in") && take("in"))
      for (skip_blanks(); i_ < s_.size() && s_[i_] != '\n' && s_[i_] != ';'; skip_blanks())
        c.words.push_back(word());
    else
      c.words.push_back({Text{"\"$@\"", std::vector<std::uint32_t>(4, c.place)}});
    parse_body(c, begin, "for", {});
  }

  void parse_case(Command& c, std::size_t begin) {
    c.kind = CommandKind::kCase;
    skip_blanks();
    c.words.push_back(word());
    require("in", begin, "case");
    for (skip_lines(); i_ < s_.size() && !at_reserved("esac"); skip_lines()) {
      Clause clause;
      take("(");
      for (skip_blanks(); i_ < s_.size() && s_[i_] != ')'; skip_blanks())
        if (!take("|")) clause.patterns.push_back(word());
      if (!take(")")) throw error(begin, "\"case\" with a pattern that no \")\" ends");
      clause.body = commands({";;", "esac"});
      if (take(";;")) take("&");
      c.clauses.push_back(std::move(clause));
    }
    require("esac", begin, "case");
  }

  bool at_definition() const {
    std::size_t i = i_;
    while (i < s_.size() && (is_name_char(s_[i], i == i_) || (i > i_ && (s_[i] == '-' || s_[i] == ':')))) ++i;
    if (i == i_) return false;
    while (i < s_.size() && s_[i] == ' ') ++i;
    return s_.compare(i, 2, "()") == 0;
  }

  void parse_function(Command& c, std::size_t begin) {
    c.kind = CommandKind::kFunction;
    skip_blanks();
    while (i_ < s_.size() && !is_break(s_[i_])) c.name += s_[i_++];
    skip_blanks();
    if (take("(")) skip_blanks(), take(")");
    skip_lines();
    if (i_ >= s_.size()) throw error(begin, "a function without a body");
    c.clauses.push_back({{}, {}, {}});
    c.clauses.back().body.push_back(command());
  }

  void parse_group(Command& c, std::size_t begin, std::string_view end) {
    c.kind = CommandKind::kGroup;
    c.clauses.push_back({{}, {}, commands({end})});
    skip_lines();
    if (!take(end)) throw error(begin, fmt::format("\"{}\" without \"{}\"", s_[begin], end));
  }

  void parse_test(Command& c, std::size_t begin) {
    c.kind = CommandKind::kTest;
    while (true) {
      for (skip_blanks(); i_ < s_.size() && s_[i_] == '\n'; skip_blanks()) ++i_;
      if (i_ >= s_.size()) throw error(begin, "\"[[\" without \"]]\"");
      if (at_reserved("]]")) break;
      const std::uint32_t here = place();
      static constexpr std::array<std::string_view, 6> kOperators{"&&", "||", "(", ")", "<", ">"};
      const auto* op = std::ranges::find_if(kOperators, [&](std::string_view o) { return at(o); });
      if (op != kOperators.end()) {
        i_ += op->size();
        Word sign;
        sign.text.add(*op, here);
        c.words.push_back(std::move(sign));
      } else {
        c.words.push_back(word());
      }
    }
    i_ += 2;
  }

  // (( ... )), its parts divided by ";".
  void parse_arithmetic(Command& c) {
    c.kind = CommandKind::kArithmetic;
    const std::size_t begin = i_;
    i_ += 2;
    std::size_t first = i_;
    for (int open = 0; i_ < s_.size(); ++i_) {
      if (s_[i_] == '(') ++open;
      if (open == 0 && s_[i_] == ';') c.parts.push_back(text_.part(first, i_)), first = i_ + 1;
      if (open == 0 && at("))")) {
        c.parts.push_back(text_.part(first, i_));
        i_ += 2;
        return;
      }
      if (s_[i_] == ')') --open;
    }
    throw error(begin, "\"((\" without \"))\"");
  }

  bool skip_redirection() {
    std::size_t i = i_;
    while (i < s_.size() && s_[i] >= '0' && s_[i] <= '9') ++i;
    if (s_.compare(i, 2, "&>") == 0) ++i;
    if (i >= s_.size() || (s_[i] != '<' && s_[i] != '>')) return false;
    i_ = i;
    if (at("<(") || at(">(")) {
      ++i_;
      i_ = end_of_parentheses(i_);
      return true;
    }
    const bool here_string = take("<<<"), here = !here_string && take("<<"), indented = here && take("-");
    if (!here && !here_string) {
      ++i_;
      while (i_ < s_.size() && (s_[i_] == '>' || s_[i_] == '&' || s_[i_] == '|')) ++i_;
      if (i_ < s_.size() && s_[i_] == '-') ++i_;
    }
    skip_blanks();
    if (i_ >= s_.size() || is_break(s_[i_])) return true;
    std::string end = word().text.chars;
    std::erase_if(end, [](char c) { return c == '"' || c == '\'' || c == '\\'; });
    if (here) here_documents_.emplace_back(end, indented);
    return true;
  }
  void skip_redirections() {
    for (skip_blanks(); i_ < s_.size() && skip_redirection(); skip_blanks()) {
    }
  }
  std::size_t end_of_parentheses(std::size_t i) const {
    int open = 0;
    for (const std::size_t begin = i; i < s_.size(); i = end_of_quoted(text_, i, sources_)) {
      if (s_[i] == '(') ++open;
      if (s_[i] == ')' && --open == 0) return i + 1;
      if (i == begin && s_[i] != '(') break;
    }
    return s_.size();
  }

  void parse_simple(Command& c) {
    const std::size_t begin = i_;
    for (skip_blanks(); i_ < s_.size(); skip_blanks()) {
      if (skip_redirection()) continue;
      if (is_break(s_[i_])) break;
      Assignment a;
      if ((c.words.empty() || declares(c)) && at_assignment(a))
        c.assignments.push_back(std::move(a));
      else
        c.words.push_back(word());
    }
    if (i_ == begin && i_ < s_.size() && (s_[i_] == '(' || s_[i_] == '&' || s_[i_] == '|'))
      throw error(i_, fmt::format("\"{}\" cannot stand here", s_[i_]));
  }

  static bool declares(const Command& c) {
    static constexpr std::array<std::string_view, 6> kNames{"export",   "declare", "local",
                                                            "readonly", "typeset", "alias"};
    return std::ranges::find(kNames, c.words.front().text.chars) != kNames.end();
  }

  // Takes an assignment, if one begins here.
  bool at_assignment(Assignment& a) {
    std::size_t i = i_;
    while (i < s_.size() && is_name_char(s_[i], i == i_)) ++i;
    if (i == i_) return false;
    a.name = s_.substr(i_, i - i_);
    a.place = place();
    if (i < s_.size() && s_[i] == '[') {
      const std::size_t close = s_.find(']', i);
      if (close == std::string::npos || s_.substr(i, close - i).find_first_of(" \n") != std::string::npos)
        return false;
      a.index = text_.part(i + 1, close);
      i = close + 1;
    }
    if (s_.compare(i, 2, "+=") == 0)
      a.appends = true, i += 2;
    else if (i < s_.size() && s_[i] == '=')
      ++i;
    else
      return false;
    i_ = i;
    if (at("(")) {
      take_elements(a);
    } else if (i_ < s_.size() && !is_break(s_[i_]) && !at("\\\n")) {
      a.value = word().text;
    }
    return true;
  }

  void take_elements(Assignment& a) {
    const std::size_t begin = i_++;
    a.is_array = true;
    while (true) {
      for (skip_blanks(); i_ < s_.size() && s_[i_] == '\n'; skip_blanks()) ++i_;
      if (i_ >= s_.size()) throw error(begin, fmt::format("the array {} is not closed by \")\"", a.name));
      if (take(")")) return;
      if (is_break(s_[i_])) throw error(i_, fmt::format("\"{}\" in the array {}", s_[i_], a.name));
      a.elements.push_back(word());
    }
  }

  // A word up to the next unquoted break.
  Word word() {
    const std::size_t begin = i_;
    while (i_ < s_.size() && !is_break(s_[i_])) {
      if ((s_[i_] == '<' || s_[i_] == '>') && i_ > begin) break;
      if (at("\\\n") && i_ > begin && i_ + 2 < s_.size() && is_break(s_[i_ + 2])) break;
      i_ = end_of_quoted(text_, i_, sources_);
    }
    if (i_ == begin) ++i_;
    return {text_.part(begin, i_)};
  }

  const Text& text_;
  const std::string& s_;
  const Sources& sources_;
  std::size_t i_ = 0;
  int depth_ = 0;
  std::vector<std::pair<std::string, bool>> here_documents_;
};

class QuoteScanner {
 public:
  QuoteScanner(const Text& text, const Sources& sources) : text_(text), s_(text.chars), sources_(sources) {}

  std::size_t end_of(std::size_t i, int depth = 0) const {
    switch (s_[i]) {
      case '\\': return std::min(i + 2, s_.size());
      case '\'': return closing(i, '\'');
      case '"': return end_of_double(i, depth);
      case '`': return end_of_backquote(i);
      case '$': return end_of_dollar(i, depth);
      default: return i + 1;
    }
  }

 private:
  Error unclosed(std::size_t i, std::string_view what) const {
    return Error(Code::kSyntax, fmt::format("{} is not closed", what))
        .at(sources_.place(text_.places[i]))
        .legal("a script that bash takes")
        .fix("close it");
  }
  std::size_t closing(std::size_t i, char quote) const {
    const std::size_t end = s_.find(quote, i + 1);
    if (end == std::string::npos) throw unclosed(i, "a quote");
    return end + 1;
  }
  std::size_t end_of_backquote(std::size_t begin) const {
    for (std::size_t i = begin + 1; i < s_.size(); i += s_[i] == '\\' ? 2 : 1)
      if (s_[i] == '`') return i + 1;
    throw unclosed(begin, "a backquote");
  }
  std::size_t end_of_double(std::size_t begin, int depth) const {
    for (std::size_t i = begin + 1; i < s_.size();) {
      if (s_[i] == '"') return i + 1;
      i = s_[i] == '\'' ? i + 1 : end_of(i, depth + 1);
    }
    throw unclosed(begin, "a quote");
  }
  std::size_t end_of_dollar(std::size_t i, int depth) const {
    if (i + 1 >= s_.size()) return i + 1;
    if (s_[i + 1] == '\'') return end_of_escapes(i + 1);
    if (s_[i + 1] == '(') return end_of_bracket(i, '(', ')', depth);
    if (s_[i + 1] == '{') return end_of_bracket(i, '{', '}', depth);
    return i + 1;
  }
  std::size_t end_of_escapes(std::size_t begin) const {
    for (std::size_t i = begin + 1; i < s_.size(); i += s_[i] == '\\' ? 2 : 1)
      if (s_[i] == '\'') return i + 1;
    throw unclosed(begin, "a quote");
  }
  std::size_t end_of_bracket(std::size_t begin, char open, char close, int depth) const {
    if (depth > kDeepest) throw unclosed(begin, "what is nested so deeply");
    int count = 0;
    for (std::size_t i = begin + 1; i < s_.size();) {
      if (s_[i] == open) ++count;
      if (s_[i] == close && --count == 0) return i + 1;
      // Within ${NAME:-it's} a single quote is a character of the word.
      i = open == '{' && s_[i] == '\'' ? i + 1 : end_of(i, depth + 1);
    }
    throw unclosed(begin, fmt::format("\"${}\"", open));
  }

  const Text& text_;
  const std::string& s_;
  const Sources& sources_;
};

}  // namespace

Commands parse(const Text& text, const Sources& sources) { return Parser(text, sources).all(); }

std::size_t end_of_quoted(const Text& text, std::size_t i, const Sources& sources) {
  return QuoteScanner(text, sources).end_of(i);
}

}  // namespace hyperrun::shell

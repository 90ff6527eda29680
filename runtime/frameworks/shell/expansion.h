// Expansion of words: variables, defaults, arrays, arithmetic, quotes, and the division into fields.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/frameworks/shell/sources.h"
#include "runtime/frameworks/shell/syntax.h"
#include "runtime/frameworks/shell/variables.h"

namespace hyperrun::shell {

class Expander {
 public:
  Expander(Variables& variables, Sources& sources) : variables_(variables), sources_(sources) {}

  // The fields that a word becomes; none if it is an unset variable without quotes.
  std::vector<Text> fields(const Word& word);
  // One text: the right side of an assignment, a word of [[ ]], a word of case.
  Text text(const Text& word);
  // Variables and substitutions of an arithmetic expression, then its value as text.
  Text arithmetic(const Text& expression, std::uint32_t place);
  // Whether the value of the expression is not zero; nullopt: not known.
  std::optional<bool> truth(const Text& expression);

 private:
  struct Field;
  void expand(const Text& word, bool quoted, Field& out);
  void expand_double_quotes(const Text& inner, Field& out);
  void expand_dollar(const Text& word, std::size_t& i, bool quoted, Field& out);
  void expand_braces(const Text& inner, std::uint32_t place, bool quoted, Field& out);
  void expand_substitution(const Text& command, std::uint32_t place, bool quoted, Field& out);
  void add_value(const std::string& name, std::uint32_t place, bool quoted, Field& out);
  void add_elements(const std::vector<Text>& elements, bool each, bool quoted, Field& out);
  std::vector<Text> elements_of(const std::string& name) const;
  Text element_of(const std::string& name, const std::string& index, std::uint32_t place);
  Text special(char c, std::uint32_t place);
  Text value_of(const std::string& name, std::uint32_t place);
  bool is_set(const std::string& name) const;
  Text changed(const Text& value, std::string_view operation, const Text& argument);
  std::string substituted(const Text& command);
  std::int64_t total_ = 0;
  int depth_ = 0;

  Variables& variables_;
  Sources& sources_;
};

// Whether the text is one that the glob stands for.
bool matches_glob(std::string_view text, std::string_view glob);

}  // namespace hyperrun::shell

#include "runtime/frameworks/shell/conditions.h"

#include <charconv>

#include "runtime/frameworks/shell/expansion.h"

namespace hyperrun::shell {
namespace {

using Truth = std::optional<bool>;

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t v = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

// An unset variable is empty; other marks are not known.
std::optional<std::string> known(const std::string& text) {
  if (!has_mark(text)) return text;
  if (!is_mark(text)) return std::nullopt;
  for (const std::string& what : marks_of(text))
    if (what.starts_with("$(")) return std::nullopt;
  return "";
}

Truth both(Truth a, Truth b) {
  if ((a && !*a) || (b && !*b)) return false;
  return a && b ? Truth(true) : std::nullopt;
}
Truth either(Truth a, Truth b) {
  if ((a && *a) || (b && *b)) return true;
  return a && b ? Truth(false) : std::nullopt;
}
Truth opposite(Truth a) { return a ? Truth(!*a) : std::nullopt; }

class Condition {
 public:
  explicit Condition(const std::vector<Text>& words) : words_(words) {}

  Truth all() { return words_.empty() ? Truth(false) : alternatives(); }

 private:
  std::string peek(std::size_t ahead = 0) const {
    return i_ + ahead < words_.size() ? words_[i_ + ahead].chars : std::string();
  }
  bool take(std::string_view sign) {
    if (i_ >= words_.size() || words_[i_].chars != sign) return false;
    return ++i_, true;
  }

  Truth alternatives() {
    Truth v = conjunction();
    while (take("||") || take("-o")) v = either(v, conjunction());
    return v;
  }
  Truth conjunction() {
    Truth v = negation();
    while (take("&&") || take("-a")) v = both(v, negation());
    return v;
  }
  Truth negation() {
    if (++depth_ > 100) return std::nullopt;
    Truth v;
    if (i_ + 1 < words_.size() && take("!")) {
      v = opposite(negation());
    } else if (take("(")) {
      v = alternatives();
      take(")");
    } else {
      v = comparison();
    }
    --depth_;
    return v;
  }

  Truth comparison() {
    const std::string left = peek(), op = peek(1);
    if (is_binary(op) && i_ + 2 < words_.size()) {
      const std::string right = peek(2);
      i_ += 3;
      return compare(left, op, right);
    }
    if (left.size() == 2 && left[0] == '-' && i_ + 1 < words_.size()) {
      i_ += 2;
      return unary(left[1], words_[i_ - 1].chars);
    }
    ++i_;
    const auto text = known(left);
    return text ? Truth(!text->empty()) : Truth(true);
  }

  static bool is_binary(std::string_view op) {
    for (const std::string_view one :
         {"=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
      if (op == one) return true;
    return false;
  }

  static Truth unary(char test, const std::string& operand) {
    const auto text = known(operand);
    if (test == 'z') return text ? Truth(text->empty()) : Truth(false);
    if (test == 'n') return text ? Truth(!text->empty()) : Truth(true);
    if (test == 'v') return std::nullopt;
    return false;
  }

  static Truth compare(const std::string& left, const std::string& op, const std::string& right) {
    const auto a = known(left), b = known(right);
    if (!a || !b) return std::nullopt;
    if (op == "=" || op == "==") return *a == *b || matches_glob(*a, *b);
    if (op == "!=") return *a != *b && !matches_glob(*a, *b);
    if (op == "=~") return std::nullopt;
    if (op == "<") return *a < *b;
    if (op == ">") return *a > *b;
    const auto x = number(*a), y = number(*b);
    if (!x || !y) return std::nullopt;
    if (op == "-eq") return *x == *y;
    if (op == "-ne") return *x != *y;
    if (op == "-lt") return *x < *y;
    if (op == "-le") return *x <= *y;
    if (op == "-gt") return *x > *y;
    return *x >= *y;
  }

  const std::vector<Text>& words_;
  std::size_t i_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<bool> holds(const std::vector<Text>& words) { return Condition(words).all(); }

}  // namespace hyperrun::shell

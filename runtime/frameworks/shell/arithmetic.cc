#include "runtime/frameworks/shell/arithmetic.h"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <stdexcept>

#include "runtime/frameworks/shell/sources.h"
#include "runtime/frameworks/shell/syntax.h"

namespace hyperrun::shell {
namespace {

using Value = std::optional<std::int64_t>;

struct Operator {
  std::string_view sign;
  int rank;  // higher binds tighter
};
constexpr std::array kOperators{Operator{"||", 1}, Operator{"&&", 2}, Operator{"==", 3}, Operator{"!=", 3},
                                Operator{"<=", 4}, Operator{">=", 4}, Operator{"<<", 5}, Operator{">>", 5},
                                Operator{"<", 4},  Operator{">", 4},  Operator{"+", 6},  Operator{"-", 6},
                                Operator{"**", 8}, Operator{"*", 7},  Operator{"/", 7},  Operator{"%", 7}};

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::uint64_t product = 1;
  for (std::int64_t i = 0; i < exponent && i < 64; ++i) product *= static_cast<std::uint64_t>(base);
  return static_cast<std::int64_t>(product);
}

// Sums and products wrap around, as in a shell.
std::int64_t wrapped(std::uint64_t v) { return static_cast<std::int64_t>(v); }

Value apply(std::string_view sign, Value left, Value right) {
  if (!left || !right) return std::nullopt;
  const std::int64_t a = *left, b = *right;
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  if (sign == "+") return wrapped(ua + ub);
  if (sign == "-") return wrapped(ua - ub);
  if (sign == "*") return wrapped(ua * ub);
  if (sign == "**") return power(a, b);
  if (sign == "||") return a != 0 || b != 0;
  if (sign == "&&") return a != 0 && b != 0;
  if (sign == "==") return a == b;
  if (sign == "!=") return a != b;
  if (sign == "<=") return a <= b;
  if (sign == ">=") return a >= b;
  if (sign == "<") return a < b;
  if (sign == ">") return a > b;
  if (sign == "<<") return b >= 0 && b < 63 ? wrapped(ua << b) : 0;
  if (sign == ">>") return b >= 0 && b < 63 ? a >> b : 0;
  if (b == 0) throw std::runtime_error("division by zero");
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1) return sign == "/" ? a : 0;
  return sign == "/" ? a / b : a % b;
}

class Evaluator {
 public:
  Evaluator(std::string_view text, const Arithmetic& variables) : s_(text), variables_(variables) {}

  Value all() {
    Value v = assignment();
    while (take(",")) v = assignment();
    if (!at_end()) throw std::runtime_error(fmt::format("\"{}\" is not expected", s_.substr(i_, 10)));
    return v;
  }

 private:
  void skip() {
    while (i_ < s_.size() && (s_[i_] == ' ' || s_[i_] == '\t' || s_[i_] == '\n' || s_[i_] == '"')) ++i_;
  }
  bool at_end() { return skip(), i_ >= s_.size(); }
  bool take(std::string_view sign) {
    skip();
    if (s_.substr(i_, sign.size()) != sign) return false;
    i_ += sign.size();
    return true;
  }

  Value assignment() {
    if (++depth_ > 200) throw std::runtime_error("nested too deeply");
    const std::size_t begin = i_;
    std::string name = identifier();
    if (!name.empty()) {
      for (const std::string_view sign : {"=", "+=", "-=", "*=", "/="}) {
        skip();
        if (s_.substr(i_, sign.size()) != sign || s_.substr(i_, 2) == "==") continue;
        i_ += sign.size();
        Value v = assignment();
        if (sign.size() > 1) v = apply(sign.substr(0, 1), variables_.value_of(name), v);
        if (v) variables_.assign(name, *v);
        --depth_;
        return v;
      }
      i_ = begin;
    }
    const Value v = choice();
    --depth_;
    return v;
  }

  Value choice() {
    const Value condition = binary(1);
    if (!take("?")) return condition;
    const Value yes = assignment();
    if (!take(":")) throw std::runtime_error("\"?\" without \":\"");
    const Value no = assignment();
    if (!condition) return std::nullopt;
    return *condition != 0 ? yes : no;
  }

  Value binary(int least) {
    Value left = unary();
    while (true) {
      skip();
      const Operator* found = nullptr;
      for (const Operator& op : kOperators)
        if (s_.substr(i_, op.sign.size()) == op.sign &&
            (found == nullptr || op.sign.size() > found->sign.size()))
          found = &op;
      if (found == nullptr || found->rank < least) return left;
      i_ += found->sign.size();
      left = apply(found->sign, left, binary(found->rank + (found->sign == "**" ? 0 : 1)));
    }
  }

  Value unary() {
    if (++depth_ > 200) throw std::runtime_error("nested too deeply");
    Value v;
    if (take("!")) {
      v = unary();
      if (v) v = *v == 0;
    } else if (take("++") || take("+")) {
      v = unary();
    } else if (take("--") || take("-")) {
      v = apply("-", 0, unary());
    } else if (take("(")) {
      v = assignment();
      if (!take(")")) throw std::runtime_error("\"(\" without \")\"");
    } else {
      v = operand();
    }
    --depth_;
    return v;
  }

  std::string identifier() {
    skip();
    std::string name;
    while (i_ < s_.size() && is_name_char(s_[i_], name.empty())) name += s_[i_++];
    return name;
  }

  Value operand() {
    skip();
    if (i_ >= s_.size()) throw std::runtime_error("the expression ends too soon");
    if (s_[i_] == kMarkBegin) {
      i_ = std::min(s_.find(kMarkEnd, i_), s_.size() - 1) + 1;
      return std::nullopt;
    }
    if (s_[i_] >= '0' && s_[i_] <= '9') return number();
    const std::string name = identifier();
    if (name.empty()) throw std::runtime_error(fmt::format("\"{}\" is no number", s_.substr(i_, 10)));
    const Value v = variables_.value_of(name);
    if (take("++") || take("--")) {
      const bool up = s_[i_ - 1] == '+';
      if (v) variables_.assign(name, wrapped(static_cast<std::uint64_t>(*v) + (up ? 1 : ~0ULL)));
    }
    return v;
  }

  Value number() {
    std::uint64_t v = 0;
    const bool hex = s_.substr(i_, 2) == "0x" || s_.substr(i_, 2) == "0X";
    if (hex) i_ += 2;
    const std::uint64_t base = hex ? 16 : 10;
    for (; i_ < s_.size(); ++i_) {
      const char c = s_[i_];
      int digit = -1;
      if (c >= '0' && c <= '9') digit = c - '0';
      if (hex && c >= 'a' && c <= 'f') digit = c - 'a' + 10;
      if (hex && c >= 'A' && c <= 'F') digit = c - 'A' + 10;
      if (digit < 0) break;
      v = v * base + static_cast<std::uint64_t>(digit);
    }
    if (i_ < s_.size() && (s_[i_] == '.' || is_name_char(s_[i_], true)))
      throw std::runtime_error("arithmetic of a shell has whole numbers only");
    return static_cast<std::int64_t>(v);
  }

  std::string_view s_;
  const Arithmetic& variables_;
  std::size_t i_ = 0;
  int depth_ = 0;
};

}  // namespace

ArithmeticResult evaluate(std::string_view expression, const Arithmetic& variables) try {
  if (expression.find_first_not_of(" \t\n") == std::string_view::npos) return {0, ""};
  return {Evaluator(expression, variables).all(), ""};
} catch (const std::runtime_error& e) {
  return {std::nullopt, e.what()};
}

}  // namespace hyperrun::shell

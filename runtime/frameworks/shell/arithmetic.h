// Arithmetic of a shell: $(( ... )) and (( ... )).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hyperrun::shell {

struct Arithmetic {
  // The value of a variable; nullopt if only a run would know it.
  std::function<std::optional<std::int64_t>(const std::string& name)> value_of;
  std::function<void(const std::string& name, std::int64_t value)> assign;
};

struct ArithmeticResult {
  std::optional<std::int64_t> value;  // nullopt: not known
  std::string fault;                  // what is wrong with the expression; empty: nothing
};

ArithmeticResult evaluate(std::string_view expression, const Arithmetic& variables);

}  // namespace hyperrun::shell

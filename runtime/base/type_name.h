#pragma once

#include <string_view>

namespace hyperrun {

// The name of T without its namespaces: "Matmul".
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;  // "... type_name() [with T = hyperrun::op::Matmul; ...]"
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

}  // namespace hyperrun

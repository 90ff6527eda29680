// A concept for overloads that serve several types: void f(AnyOf<Add, Cast> auto& op).
#pragma once

#include <concepts>
#include <type_traits>

namespace hyperrun {

template <class T, class... U>
concept AnyOf = (std::same_as<std::remove_const_t<T>, U> || ...);

}  // namespace hyperrun

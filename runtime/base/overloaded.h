// Several lambdas as one, for std::visit: the overload that fits an alternative best is called.
#pragma once

namespace hyperrun {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace hyperrun

// A reference to something that can be called: as std::function, but it allocates nothing and owns nothing.
// What it refers to must outlive the call that it is passed to.
#pragma once

#include <memory>
#include <utility>

namespace hyperrun {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class F>
  FunctionRef(const F& f)  // NOLINT: a lambda is passed where a FunctionRef is asked for
      : object_(std::addressof(f)), call_([](const void* object, Arguments... arguments) -> Result {
          return (*static_cast<const F*>(object))(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  const void* object_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace hyperrun

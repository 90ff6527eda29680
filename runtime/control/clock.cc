#include "runtime/control/clock.h"

#include <array>
#include <cstdio>

namespace hyperrun::control {

std::string to_text(Clock::duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g s", std::chrono::duration<double>(time).count());
  return text.data();
}

}  // namespace hyperrun::control

#include "runtime/control/clock.h"

#include <fmt/core.h>

namespace hyperrun::control {

std::string to_text(Clock::duration time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

}  // namespace hyperrun::control

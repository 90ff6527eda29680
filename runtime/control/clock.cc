#include "runtime/control/clock.h"

#include "runtime/base/format.h"

namespace hyperrun::control {

std::string to_text(Clock::duration time) {
  return format("%g s", std::chrono::duration<double>(time).count());
}

}  // namespace hyperrun::control

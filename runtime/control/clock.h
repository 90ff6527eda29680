#pragma once

#include <chrono>
#include <string>

namespace hyperrun::control {

using Clock = std::chrono::steady_clock;

std::string to_text(Clock::duration time);  // "0.8 s"

}  // namespace hyperrun::control

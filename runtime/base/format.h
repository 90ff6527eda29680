#pragma once

#include <string>

namespace hyperrun {

// printf into a string of any length. New code uses fmt::format.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

}  // namespace hyperrun

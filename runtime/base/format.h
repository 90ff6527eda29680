#pragma once

#include <string>

namespace hyperrun {

// As printf does, of any length.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

}  // namespace hyperrun

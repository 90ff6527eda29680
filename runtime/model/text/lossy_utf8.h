// Text in UTF-8 from bytes that need not be.
#pragma once

#include <string>
#include <string_view>

namespace hyperrun {

// The text with U+FFFD in place of each broken sequence. A sequence that begins well and is cut short becomes
// one U+FFFD, as Unicode recommends and as Rust, Python (errors="replace") and browsers do; every other
// invalid byte becomes one of its own.
std::string lossy_utf8(std::string_view bytes);

}  // namespace hyperrun

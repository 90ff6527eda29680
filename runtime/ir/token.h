// Tokens that the passes of a generation return.
#pragma once

#include <cstdint>

namespace hyperrun {

// The token that is drawn when some logit is not finite.
inline constexpr std::int32_t kNoToken = -1;

}  // namespace hyperrun

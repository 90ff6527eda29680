// A token as passes of a generation give it back.
#pragma once

#include <cstdint>

namespace hyperrun {

// What is drawn where the logits are not all finite.
inline constexpr std::int32_t kNoToken = -1;

}  // namespace hyperrun

#pragma once

#include <algorithm>
#include <cstdint>

namespace hyperrun::control {

// The time from a run's start until all its ranks are ready, unless options say otherwise. It must hold where
// hundreds of processes start on two cores: 256 take some three minutes there.
inline double start_seconds(std::int32_t ranks) { return std::clamp(2.0 * ranks, 180.0, 600.0); }

}  // namespace hyperrun::control

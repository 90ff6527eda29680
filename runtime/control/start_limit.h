#pragma once

#include <algorithm>
#include <cstdint>

namespace hyperrun::control {

// The time from a run's start until all its devices are ready, unless options say otherwise. It must hold
// where hundreds of processes start on two cores: 256 take some three minutes there.
inline double start_seconds(std::int32_t devices) { return std::clamp(2.0 * devices, 180.0, 600.0); }

}  // namespace hyperrun::control

#pragma once

#include <string>

#include "runtime/sim/simulate.h"

namespace hyperrun {

// The traffic of a simulated step by mesh axis and collective: how often, bytes of the busiest device, bytes
// of all devices. A collective counts the bytes that a device sends, a message the bytes that it fetches.
// Empty if nothing moves.
std::string traffic_table(const SimResult& step);

}  // namespace hyperrun

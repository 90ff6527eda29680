#pragma once

#include <string>

#include "runtime/sim/simulate.h"

namespace hyperrun {

// What a simulated step moves, by mesh axis and collective: how often, how much the busiest device moves, and
// how much all devices move. Bytes are sent or, of a message, fetched. Empty where nothing is moved.
std::string traffic_table(const SimResult& step);

}  // namespace hyperrun

// Tables of a simulated step, as text for people.
#pragma once

#include <string>

#include "runtime/report/report.h"

namespace hyperrun {

// The time of the step, its tokens a second, and its share of the machine's FLOPs. `machine` is its name.
std::string step_table(const SimulatedUse& use, const std::string& machine);

// The shares of the step in which devices compute, wait for communication, for transfers and for each other,
// and update weights. Equal devices share a row.
std::string breakdown_table(const SimulatedUse& use);

// The bytes that cross each level of the machine.
std::string levels_table(const SimulatedUse& use);

}  // namespace hyperrun

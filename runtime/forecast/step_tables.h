// A simulated step for people.
#pragma once

#include <string>

#include "runtime/report/report.h"

namespace hyperrun {

// How long the step is, and which share of what the machine can do it uses. `machine`: its name.
std::string step_table(const SimulatedUse& use, const std::string& machine);

// Shares of the step in which devices compute, wait for communication or transfers, for each other, and
// update. Devices that are alike share a row.
std::string breakdown_table(const SimulatedUse& use);

// Bytes that cross each level of the machine.
std::string levels_table(const SimulatedUse& use);

}  // namespace hyperrun

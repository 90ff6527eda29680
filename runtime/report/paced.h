#pragma once

#include <string>
#include <string_view>

#include "runtime/report/report.h"

namespace hyperrun {

// A line that says how long `what` ("a step") took beside the simulation, of how many (`times`: "steps"), and
// a table by kind of instruction; empty where none was measured.
std::string describe_paced(const PacedUse& paced, std::string_view what, std::string_view times);

}  // namespace hyperrun

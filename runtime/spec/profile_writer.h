// Writes a supernode's profile, as people write one: a figure a line.
#pragma once

#include <string>

#include "runtime/ir/machine.h"

namespace hyperrun {

// parse_profile() of it gives the machine again. Figures that a job gave are written as placeholders: of
// those a profile knows no more.
std::string to_textproto(const Machine& machine);

}  // namespace hyperrun

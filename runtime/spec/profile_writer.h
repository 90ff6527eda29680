// Writes a profile in the form in which people write one, with one figure on each line.
#pragma once

#include <string>

#include "runtime/ir/machine.h"

namespace hyperrun {

// The profile of a machine; parse_profile() reads it back. Figures given by a job are written as
// placeholders, because a profile has no such kind of evidence.
std::string to_textproto(const Machine& machine);

}  // namespace hyperrun

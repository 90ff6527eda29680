// All figures of a profile, one after the other: those who vary the machine, or count how it is known, need
// no list of their own.
#pragma once

#include <vector>

#include "runtime/ir/figure_path.h"
#include "runtime/ir/machine.h"

namespace hyperrun {

// Those that the profile gives, in the order of its file. A machine made of a job's rates has none.
std::vector<FigurePath> figures_of(const Machine& machine);

}  // namespace hyperrun

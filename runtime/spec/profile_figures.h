// Lists all figures of a profile, for code that varies the machine or counts the kinds of evidence.
#pragma once

#include <vector>

#include "runtime/ir/figure_path.h"
#include "runtime/ir/machine.h"

namespace hyperrun {

// The figures that the profile gives, in the order of its file, and behind them those of the software. A
// machine made of a job's rates has none.
std::vector<FigurePath> figures_of(const Machine& machine);

}  // namespace hyperrun

// Checks the range that a profile gives for a guessed figure.
#pragma once

#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/figure_path.h"
#include "runtime/ir/machine.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// Only a guess may have a range, with all its three parts, and it must contain the value.
void check_range(const FigurePath& at, const Figure& f, const JobSource& source, std::vector<Error>& errors);

}  // namespace hyperrun

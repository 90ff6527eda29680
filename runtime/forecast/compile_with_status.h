#pragma once

#include "runtime/compile/compile.h"

namespace hyperrun {

// compile() with a status line: planning transfers may take minutes.
Compiled compile_with_status(const Job& job);

}  // namespace hyperrun

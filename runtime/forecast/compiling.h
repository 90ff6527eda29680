#pragma once

#include "runtime/compile/compile.h"

namespace hyperrun {

// compile(), which may take minutes where transfers are planned: those who wait are told.
Compiled compile_telling(const Job& job);

}  // namespace hyperrun

// How a run ends that cannot go on.
#pragma once

#include <functional>

#include "runtime/base/error.h"

namespace hyperrun {

// Writes what there is of the run, by `finish`, and says why it ended. What `finish` throws, too, is told
// before that, where it is something else.
void tell_failure(const Error& cause, const std::function<void()>& finish);

}  // namespace hyperrun

// Small jobs for tests.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun::testing {

// A Llama of about 0.1 million parameters with grouped queries on a mesh dp x tp; presets "dp", "tp" and
// those given.
Job small_job(int dp, int tp, const std::vector<std::string>& more_presets = {});

}  // namespace hyperrun::testing

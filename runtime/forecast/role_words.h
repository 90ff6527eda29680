#pragma once

#include <cstddef>
#include <string>

#include "runtime/ir/job.h"

namespace hyperrun {

// "pp 0 (layers 0 to 3, 8 to 11)": the devices of a role of a job that has several.
std::string role_words(const Job& job, std::size_t role);

}  // namespace hyperrun

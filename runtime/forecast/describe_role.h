#pragma once

#include <cstddef>
#include <string>

#include "runtime/ir/job.h"

namespace hyperrun {

// Describes a role of a pipeline by its stage and layers: "pp 0 (layers 0 to 3, 8 to 11)".
std::string describe_role(const Job& job, std::size_t role);

}  // namespace hyperrun

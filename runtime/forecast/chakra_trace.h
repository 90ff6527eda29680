// Writes a simulated step as Chakra execution traces.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {

// Writes PREFIX.D.et for each of `devices`, and PREFIX.groups.json. Throws kUnwritable.
void write_chakra(const std::string& prefix, const std::vector<int>& devices, const Plan& plan,
                  const SimResult& result);

}  // namespace hyperrun

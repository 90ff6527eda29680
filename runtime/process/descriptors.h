// The limit of open files (ulimit -n): each rank takes some of them in the controller and in mpirun.
#pragma once

#include <cstdint>

namespace hyperrun::process {

// Raises the limit of this process, and so of those that it starts, to what so many ranks on this host need.
// Throws kMpi if it may not: mpirun would crash.
void require_descriptors(std::int32_t ranks);

}  // namespace hyperrun::process

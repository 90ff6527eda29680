// mpirun's file of hosts, as far as it tells how many ranks they take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun::control {

struct HostLine {
  int line = 0;  // from 1
  std::string host;
  std::optional<std::int32_t> slots;  // none: as many as the host has cores, which mpirun finds out
};

// Throws kMpi, at `place`:LINE, where the number of slots is none.
std::vector<HostLine> parse_hosts(std::string_view text, const std::string& place);

// Throws kTooFewRanks where the file says that its hosts have fewer slots than the job has devices; mpirun
// would put the others on them all the same. kMissingFile when it cannot be read.
void require_slots(const std::string& hostfile, std::int32_t devices);

}  // namespace hyperrun::control

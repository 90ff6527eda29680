#include "memory/host.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace hyperrun {

int Topology::hosts() const {
  return host_of.empty() ? 0 : 1 + *std::max_element(host_of.begin(), host_of.end());
}

std::vector<int> Topology::peers(int rank) const {
  std::vector<int> result;
  for (int r = 0; r < size(); ++r) {
    if (host_of[static_cast<std::size_t>(r)] == host_of[static_cast<std::size_t>(rank)]) result.push_back(r);
  }
  return result;
}

Topology Topology::one_host(int ranks) { return uniform(1, ranks); }

Topology Topology::uniform(int hosts, int ranks_per_host) {
  HR_CHECK(hosts > 0 && ranks_per_host > 0);
  Topology t;
  for (int r = 0; r < hosts * ranks_per_host; ++r) t.host_of.push_back(r / ranks_per_host);
  return t;
}

}  // namespace hyperrun

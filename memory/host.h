// Which ranks share a host, and the communicator over which they share memory.
#pragma once

#include <vector>

namespace hyperrun {

// host_of[rank] is a small index; ranks with the same index address the same memory.
struct Topology {
  std::vector<int> host_of;

  int size() const { return static_cast<int>(host_of.size()); }
  int hosts() const;
  std::vector<int> peers(int rank) const;  // the ranks on that rank's host, itself among them, ascending

  static Topology one_host(int ranks);
  static Topology uniform(int hosts, int ranks_per_host);  // host-major

  bool operator==(const Topology&) const = default;
};

}  // namespace hyperrun

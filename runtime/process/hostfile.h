// mpirun's file of hosts, read for its numbers of slots.
//
//   node1 slots=8
//   node2 slots=8
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun::process {

struct HostLine {
  int line = 0;  // the line's number, from 1
  std::string host;
  std::optional<std::int32_t> slots;  // nullopt: the number of cores of the host, which mpirun finds out
};

// Parses a host file. Throws kMpi, at `place`:LINE, for a number of slots that is no number.
std::vector<HostLine> parse_hosts(std::string_view text, const std::string& place);

// The host file that mpirun takes without being told, as Kubernetes' MPI operator sets it. Empty: none.
std::string default_hostfile();

// The hosts of a file together.
struct HostSlots {
  std::int32_t hosts = 0;             // a host that stands twice counts once
  std::optional<std::int32_t> slots;  // their sum; nullopt: a line has none
};
// Throws kMissingFile if the file cannot be read, kTooFewRanks if it names no host.
HostSlots slots_of(const std::string& hostfile);

// Throws kTooFewRanks if the file's hosts have fewer slots than the run has ranks: mpirun would
// oversubscribe them silently. Throws kMissingFile if the file cannot be read.
void require_slots(const std::string& hostfile, std::int32_t ranks);

}  // namespace hyperrun::process

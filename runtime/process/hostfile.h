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
  int line = 0;  // the number of its first line, from 1
  std::string host;
  std::optional<std::int32_t> slots;  // nullopt: the number of cores of the host, which mpirun finds out
  std::string others = {};            // further words of the first line, as they are

  bool operator==(const HostLine&) const = default;
};

// Parses a host file, also one with a byte order mark or line ends of Windows. A host in several lines has
// the sum of their slots; a line without slots counts as one then, as for mpirun. Throws kMpi, at
// `place`:LINE, for a number of slots that is no number, and for an IPv6 address, which mpirun takes for no
// host.
std::vector<HostLine> parse_hosts(std::string_view text, const std::string& place);

// The lines of a host file, one at least. Throws kMissingFile if it cannot be read, kTooFewRanks if it names
// no host.
std::vector<HostLine> read_hosts(const std::string& hostfile);

// A host file with these lines.
std::string text_of(const std::vector<HostLine>& hosts);

// The host file in the form that mpirun reads, which knows neither line ends of Windows nor a host with slots
// in two lines.
class HostfileForMpirun {
 public:
  // `hostfile` may be empty: there is none.
  explicit HostfileForMpirun(const std::string& hostfile);
  HostfileForMpirun(const HostfileForMpirun&) = delete;
  HostfileForMpirun& operator=(const HostfileForMpirun&) = delete;
  ~HostfileForMpirun();

  // `hostfile` itself if it is in that form; otherwise a file in memory, which lives as long as this.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

// The host file that mpirun takes without being told, as Kubernetes' MPI operator sets it. Empty: none.
std::string default_hostfile();

// The hosts of a file together.
struct HostSlots {
  std::int32_t hosts = 0;             // a host in several lines counts once
  std::optional<std::int32_t> slots;  // their sum; nullopt: a line has none
};
// Throws kMissingFile if the file cannot be read, kTooFewRanks if it names no host.
HostSlots slots_of(const std::string& hostfile);

// Throws kTooFewRanks if the file's hosts have fewer slots than the run has ranks: mpirun would
// oversubscribe them silently. Throws kMissingFile if the file cannot be read.
void require_slots(const std::string& hostfile, std::int32_t ranks);

}  // namespace hyperrun::process

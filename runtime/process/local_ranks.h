// The ranks that a launcher has started on this host, as /proc shows them. Nothing else tells of a rank that
// has not joined yet.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hyperrun::process {

struct LocalRank {
  enum class State : std::uint8_t { kAlive, kStopped, kEnded };

  int pid = 0;
  State state = State::kAlive;
};

class LocalRanks {
 public:
  // Adds a launcher. Its children that have a rank are ranks, of this MPI job if one is named: a launcher may
  // serve several.
  void add_launcher(int pid, const std::string& mpi_job) { launchers_.try_emplace(pid, mpi_job); }

  // Reads /proc again. A rank that has been seen once stays known.
  void look();
  const std::map<std::int32_t, LocalRank>& all() const { return ranks_; }
  // The pid of a launcher that is stopped, as ctrl-Z does; 0: none. Its ranks notice when they end.
  int stopped_launcher() const;

 private:
  std::map<int, std::string> launchers_;  // the MPI job by launcher's pid
  std::map<std::int32_t, LocalRank> ranks_;
};

int parent_of(int pid);  // 0: there is no such process

}  // namespace hyperrun::process

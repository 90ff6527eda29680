// The ranks that a launcher has started on this host, as they look from outside: of a rank that has not
// joined /proc alone can tell.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hyperrun::control {

struct LocalRank {
  enum class State : std::uint8_t { kAlive, kStopped, kEnded };

  int pid = 0;
  State state = State::kAlive;
};

class LocalRanks {
 public:
  // Its children that have a rank are ranks, of this MPI job where one is named: a launcher may serve
  // several.
  void add_launcher(int pid, const std::string& mpi_job) { launchers_.try_emplace(pid, mpi_job); }

  // Looks again. A rank that has been seen once stays known.
  void look();
  const std::map<std::int32_t, LocalRank>& all() const { return ranks_; }
  // A launcher that is stopped as ctrl-Z stops it, which its ranks notice when they end; 0: none is.
  int stopped_launcher() const;

 private:
  std::map<int, std::string> launchers_;  // with the job
  std::map<std::int32_t, LocalRank> ranks_;
};

int parent_of(int pid);  // 0: there is no such process

}  // namespace hyperrun::control

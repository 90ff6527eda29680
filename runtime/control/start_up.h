// The start-up of a run, until all its ranks have joined and have got through the start of MPI. It finds
// ranks that have died meanwhile, and names those that are late.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>  // before Asio: Boost 1.74 under C++20 needs it
#include <vector>

#include "runtime/base/error.h"
#include "runtime/control/membership.h"
#include "runtime/control/watch.h"
#include "runtime/process/local_ranks.h"

namespace hyperrun::control {

class StartUp {
 public:
  struct Limit {
    Clock::duration time;
    Clock::duration stopped;  // of a rank of this host that a signal has stopped
    std::function<void(const Error&)> over;
  };

  // `address` is the one that ranks join at.
  StartUp(asio::io_context& io, Membership& members, Watch& watch, std::string address);

  void begin(Limit limit);
  void end();
  // Kills ranks of this host that have not joined and that nobody else may end.
  void kill_absent();
  // Adds a launcher, or the parent of a rank: its children on this host are ranks.
  void add_launcher(int pid, const std::string& mpi_job) {
    ranks_.add_launcher(pid, mpi_job);
    ranks_.look();
  }
  bool any_seen() const { return !ranks_.all().empty(); }             // on this host
  int stopped_launcher() const { return ranks_.stopped_launcher(); }  // as in LocalRanks

 private:
  void tick();
  void find_dead();
  std::optional<Error> stopped_too_long();
  void introduce(std::int32_t rank, const process::LocalRank& process);
  Error overdue();
  Error overdue_join(const std::vector<std::int32_t>& absent);
  std::string limit() const;

  Membership& members_;
  Watch& watch_;
  std::string address_;
  Limit limit_;
  process::LocalRanks ranks_;
  Clock::time_point deadline_;
  bool any_dead_ = false;
  std::map<std::int32_t, Clock::time_point> stopped_since_;  // by rank
  asio::steady_timer tick_;
};

}  // namespace hyperrun::control

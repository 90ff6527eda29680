#include "runtime/process/local_ranks.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace hyperrun::process {
namespace fs = std::filesystem;
namespace {

fs::path folder(int pid) { return fs::path("/proc") / std::to_string(pid); }

// Returns a file's content; empty if the process ends while it is read. Reading fails then, and a stream's
// own iterators would throw.
std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The fields behind the name, which may hold any character: the state, then the parent.
std::istringstream behind_name(int pid) {
  const std::string stat = content(folder(pid) / "stat");
  const std::size_t name_end = stat.rfind(')');
  return std::istringstream(name_end == std::string::npos ? "" : stat.substr(name_end + 1));
}

LocalRank::State state_of(int pid) {
  char letter = 'X';
  behind_name(pid) >> letter;
  switch (letter) {
    case 'T':
    case 't': return LocalRank::State::kStopped;
    case 'X':
    case 'Z': return LocalRank::State::kEnded;
    default: return LocalRank::State::kAlive;
  }
}

// The children of all threads of a process.
std::vector<int> children_of(int pid) {
  std::vector<int> children;
  std::error_code gone;
  for (fs::directory_iterator i(folder(pid) / "task", gone), end; !gone && i != end; i.increment(gone)) {
    std::ifstream list(i->path() / "children");
    children.insert(children.end(), std::istream_iterator<int>(list), {});
  }
  return children;
}

// Returns the process's rank; nullopt if it is no rank, or has not become one yet.
std::optional<std::int32_t> rank_of(int pid, const std::string& mpi_job) {
  const std::string environment = '\0' + content(folder(pid) / "environ");
  if (!mpi_job.empty() && environment.find('=' + mpi_job + '\0') == std::string::npos) return std::nullopt;
  for (const std::string_view variable : {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK="})
    if (const std::size_t at = environment.find('\0' + std::string(variable)); at != std::string::npos)
      return std::atoi(environment.c_str() + at + 1 + variable.size());
  return std::nullopt;
}

}  // namespace

void LocalRanks::look() {
  std::set<int> known;
  for (auto& [rank, process] : ranks_) {
    process.state = state_of(process.pid);
    known.insert(process.pid);
  }
  for (const auto& [launcher, job] : launchers_)
    for (const int pid : children_of(launcher))
      if (!known.contains(pid))
        if (const auto rank = rank_of(pid, job)) ranks_.try_emplace(*rank, LocalRank{pid, state_of(pid)});
}

int LocalRanks::stopped_launcher() const {
  for (const auto& [launcher, job] : launchers_)
    if (state_of(launcher) == LocalRank::State::kStopped) return launcher;
  return 0;
}

int parent_of(int pid) {
  char state = 0;
  int parent = 0;
  behind_name(pid) >> state >> parent;
  return parent;
}

}  // namespace hyperrun::process

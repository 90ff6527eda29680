#include "runtime/run/survivors.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/report/run_directory.h"

namespace hyperrun {
namespace {

// Limit of a host's answer. mpirun starts a daemon there by ssh, which takes a second on a busy host.
constexpr std::chrono::milliseconds kAnswer{4000};

// Empty: which hosts there are is not known, or it is this one alone.
std::vector<process::HostLine> lines_of(const Hosts& hosts) {
  if (!hosts.file.empty()) return process::read_hosts(hosts.file);
  return hosts.by_allocation() ? process::hosts_of(*hosts.allocation) : std::vector<process::HostLine>();
}

}  // namespace

Survivors::~Survivors() {
  std::error_code none;
  std::filesystem::remove(file_, none);
}

std::int32_t Survivors::look(const std::vector<std::string>& host_of_device) {
  const std::vector<process::HostLine> lines = lines_of(all_);
  if (lines.size() < 2) return 0;
  const std::vector<process::Reached> reached = process::reach_hosts(lines, all_.mpirun_args, kAnswer);
  take(reached);
  std::set<std::string> names;
  for (const process::Reached& r : reached) names.insert(r.name);
  return static_cast<std::int32_t>(
      std::ranges::count_if(host_of_device, [&](const std::string& host) { return !names.contains(host); }));
}

bool Survivors::more() {
  if (gone_ == 0) return false;
  if (asked_.valid()) {
    if (asked_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    const std::vector<process::Reached> reached = asked_.get();
    const auto gone = static_cast<std::size_t>(std::ranges::count(reached, "", &process::Reached::name));
    if (gone < gone_) {
      take(reached);
      return true;
    }
  }
  asked_ = std::async(std::launch::async, [lines = lines_of(all_), arguments = all_.mpirun_args] {
    return process::reach_hosts(lines, arguments, kAnswer);
  });
  return false;
}

void Survivors::take(const std::vector<process::Reached>& reached) {
  std::vector<process::HostLine> left;
  for (const process::Reached& r : reached)
    if (!r.name.empty()) left.push_back(r.host);
  gone_ = reached.size() - left.size();
  left_ = all_;
  if (gone_ == 0 || left.empty()) return;
  write_file_atomically(file_, process::text_of(left));
  left_.file = file_;
}

}  // namespace hyperrun

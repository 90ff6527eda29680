#include "memory/host_memory.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kUnlimited{INT64_MAX};
constexpr const char* kGroups = "/sys/fs/cgroup";

// The number in a file; unlimited if there is none, as in the file of a group without a limit.
Bytes number_in(const fs::path& file) {
  std::int64_t value = 0;
  return std::ifstream(file) >> value ? Bytes(value) : kUnlimited;
}

// The number behind `name` in a file of names and numbers, in the file's unit; 0 if it is not there.
std::int64_t field(const fs::path& file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name)) return std::stoll(line.substr(name.size()));
  return 0;
}

// A hierarchy of groups: where it is mounted, and the path of this process's group in it.
struct Group {
  fs::path root, path;
};

// The groups whose limits of memory hold for this process. Version 1 names controllers, several of them where
// they are mounted together.
std::vector<Group> groups_of_this_process() {
  std::vector<Group> groups;
  std::ifstream lines("/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path path = fs::path(line.substr(second + 1)).relative_path();
    if (controllers == ",,") groups.push_back({kGroups, path});
    if (controllers.find(",memory,") != std::string::npos)
      groups.push_back({fs::path(kGroups) / "memory", path});
  }
  return groups;
}

}  // namespace

Bytes host_memory() {
  return Bytes(std::int64_t{sysconf(_SC_PHYS_PAGES)} * std::int64_t{sysconf(_SC_PAGESIZE)});
}

Bytes free_shared_memory() {
  struct statvfs s {};
  if (statvfs("/dev/shm", &s) != 0) return kUnlimited;
  return Bytes(static_cast<std::int64_t>(s.f_bavail) * static_cast<std::int64_t>(s.f_frsize));
}

Bytes left_in_group(const fs::path& folder) {
  const bool v1 = !fs::exists(folder / "memory.max");
  const Bytes limit = number_in(folder / (v1 ? "memory.limit_in_bytes" : "memory.max"));
  const Bytes used = number_in(folder / (v1 ? "memory.usage_in_bytes" : "memory.current"));
  if (limit == kUnlimited || used == kUnlimited) return kUnlimited;
  const Bytes droppable(field(folder / "memory.stat", v1 ? "total_inactive_file " : "inactive_file "));
  return std::max(Bytes(0), limit - used + std::min(droppable, used));
}

Bytes left_in_groups(const fs::path& root, const fs::path& path) {
  Bytes left = left_in_group(root);
  fs::path folder = root;
  for (const fs::path& name : path) left = std::min(left, left_in_group(folder /= name));
  return left;
}

Bytes available_memory() {
  const std::int64_t kib = field("/proc/meminfo", "MemAvailable:");
  Bytes available = kib > 0 ? kKiB * kib : kUnlimited;
  for (const Group& group : groups_of_this_process())
    available = std::min(available, left_in_groups(group.root, group.path));
  return available;
}

}  // namespace hyperrun

#include "memory/host_memory.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

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

// The folder of this process's group for memory. Within a container its own group is the root.
fs::path group_of_this_process() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool v1 = line.find(":memory:") != std::string::npos;
    if (!v1 && !line.starts_with("0::")) continue;
    const fs::path root = v1 ? fs::path(kGroups) / "memory" : fs::path(kGroups);
    const fs::path folder = root / fs::path(line.substr(line.rfind(':') + 1)).relative_path();
    if (fs::exists(folder)) return folder;
    if (v1 || fs::exists(root / "memory.max")) return root;
  }
  return kGroups;
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

Bytes available_memory() {
  const std::int64_t kib = field("/proc/meminfo", "MemAvailable:");
  return std::min(kib > 0 ? kKiB * kib : kUnlimited, left_in_group(group_of_this_process()));
}

}  // namespace hyperrun

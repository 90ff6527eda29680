// The limit on the size of files that a process writes (ulimit -f). Beyond it a write fails with EFBIG, and a
// signal ends the process unless it is handled.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <limits>

namespace hyperrun {

inline constexpr const char* kRaiseFileSizeLimit =
    "raise the limit on the size of files: ulimit -f unlimited";

// Has the write alone fail. The handler is not SIG_IGN, which programs that we start would inherit.
inline void survive_file_size_limit() {
  std::signal(SIGXFSZ, [](int) {});
}

inline std::int64_t file_size_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(limit.rlim_cur);
}

}  // namespace hyperrun

#include "runtime/process/descriptors.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include "runtime/base/error.h"

namespace hyperrun::process {
namespace {

// As seen with Open MPI 4.1: pipes of a rank's input and outputs, and its sockets; and what there is without
// ranks.
constexpr std::int64_t kOfRank = 6, kWithoutRanks = 64;

}  // namespace

void require_descriptors(std::int32_t ranks) {
  const std::int64_t needed = kWithoutRanks + kOfRank * ranks;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(needed)) return;
  limit.rlim_cur = static_cast<rlim_t>(needed);
  if (limit.rlim_max >= limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  throw Error(Code::kMpi, fmt::format("{} {} take up to {} open files, and a process may have {}", ranks,
                                      ranks == 1 ? "rank" : "ranks", needed, limit.rlim_max))
      .at("ulimit -n")
      .legal(fmt::format("{} or more", needed))
      .fix("raise the limit of open files, or let a rank host more devices (--ranks)");
}

}  // namespace hyperrun::process

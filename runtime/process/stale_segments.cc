#include "runtime/process/stale_segments.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "runtime/process/host.h"

namespace hyperrun::process {
namespace fs = std::filesystem;

namespace {

// The names of windows do not tell whose they are, and another user's job may have our number.
bool is_own(const fs::path& file) {
  struct stat status {};
  return lstat(file.c_str(), &status) == 0 && status.st_uid == geteuid();
}

}  // namespace

void remove_segments(const std::string& mpi_job, const fs::path& shm) {
  std::uint32_t job = 0;  // Slurm's PMIx names a job by words; its segments cannot be told by name
  const auto [end, failed] = std::from_chars(mpi_job.data(), mpi_job.data() + mpi_job.size(), job);
  if (mpi_job.empty() || failed != std::errc() || end != mpi_job.data() + mpi_job.size()) return;
  std::array<char, 16> hex{};
  const auto digits = std::to_chars(hex.data(), hex.data() + hex.size(), job, 16);
  const std::string_view name(hex.data(), digits.ptr);
  const std::string messages = fmt::format("vader_segment.{}.{}.{}.", host_name(), geteuid(), name),
                    windows = fmt::format("osc_sm.{}.{}.", host_name(), name);
  std::error_code error;  // another process may be removing the same
  for (fs::directory_iterator i(shm, error), end_of; !error && i != end_of; i.increment(error)) {
    std::error_code gone;
    const std::string file = i->path().filename().string();
    const bool ours = file.starts_with(messages) || (file.starts_with(windows) && is_own(i->path()));
    if (ours) fs::remove(i->path(), gone);
  }
}

void remove_segments_of_own_job() { remove_segments(mpi_job_id()); }

void remove_session(int mpirun_pid, const fs::path& tmp) {
  std::error_code gone;  // mpirun has removed it itself
  fs::remove_all(tmp / fmt::format("ompi.{}.{}", host_name(), geteuid()) / fmt::format("pid.{}", mpirun_pid),
                 gone);
}

}  // namespace hyperrun::process

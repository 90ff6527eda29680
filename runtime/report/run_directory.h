// The folder that a run leaves behind (docs/run_directory.md describes each file), and its small files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/report/goodput.h"

namespace hyperrun {

// Names of the files in a run directory.
inline constexpr std::string_view kJobFile = "job.textproto";
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kMetricsFile = "metrics.jsonl";
inline constexpr std::string_view kReportFile = "report.json";
inline constexpr std::string_view kTraceFile = "trace.pftrace";
inline constexpr std::string_view kLossFile = "loss.svg";

// Replaces a file whole or not at all: the new one is written beside it, synced, and renamed. Throws
// kUnwritable.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Fills in "{job}" (characters other than letters, digits, '.', '_' and '-' become '_') and "{time}" (local,
// "20260131-235959") in run.directory of a job.
std::string expand_directory(std::string_view pattern, std::string_view job, Nanos since_epoch);

class RunDirectory {
 public:
  // Makes `path` and its parents. An earlier run's files are never touched: if `path` exists and is not
  // empty, the first of path-2, path-3, ... that does not exist or is empty is taken. Throws kUnwritable.
  static RunDirectory create(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(std::string_view name) const { return path_ / name; }

  // A sentence for the user if another folder than the requested one was taken, else "".
  const std::string& notice() const { return notice_; }

  // Writes a file atomically. Throws kUnwritable.
  void write(std::string_view name, std::string_view content) const;

 private:
  std::filesystem::path path_;
  std::string notice_;
};

// Samples that no step has seen, as one on them has diverged: the first, counted from the beginning of the
// training, and their number.
struct LeftOut {
  std::int64_t first = 0, samples = 0;
};

// A loss after which a run has started again.
struct Restart {
  std::int64_t after = 0;  // steps done when it happened
  std::int64_t from = 0;   // steps that were not done again
  std::string cause;       // of the error, without its remedy
  Nanos lost{};            // when it was found, since the Unix epoch
  Nanos time{};            // from then to the end of the first step afterwards; 0: none has ended
  LeftOut left_out;
};

// The manifest of a run: what ran, where, and how it ended. It is written at the start (state "running") and
// again at the end.
struct Manifest {
  std::string job;
  std::vector<std::string> command_line;
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version
  std::uint64_t seed = 0;
  int ranks = 0;                   // processes that host the devices, in blocks of consecutive ones
  std::vector<std::string> hosts;  // host of each device, by its number
  Nanos start{};                   // start, since the Unix epoch
  std::optional<Nanos> end;
  std::string state = "running";   // running, finished, failed, interrupted
  std::optional<int> exit_status;  // exit status of the process, with `end`
  std::string error;               // the whole message if it failed or was interrupted
  std::vector<Restart> restarts;   // in their order
  std::optional<Goodput> goodput;  // of a training, once a step has begun
};

// JSON, indented, with hyperrun's own version and git revision.
std::string to_json(const Manifest& manifest);

}  // namespace hyperrun

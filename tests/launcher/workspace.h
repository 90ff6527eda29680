// A folder with a corpus, a small job and the files of its runs. It also finds what runs must not leave
// behind: processes and shared memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/launcher/process.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {

// A job of two devices, data parallel, with six steps of 0.14 million parameters: a run takes about a second.
extern const std::string kJob;

struct Edit {
  std::string from, to;
};
// Replaces each `from`, which must occur exactly once.
std::string edited(std::string text, const std::vector<Edit>& edits);

// English text of `bytes` bytes, in varying orders of a few sentences.
std::string english(std::size_t bytes);

Command hyperrun(const std::vector<std::string>& arguments);
// An mpirun as a user calls it, also as root.
Command mpirun(int ranks, const std::vector<std::string>& arguments,
               const std::vector<std::string>& options = {});

// Runs the command in a namespace of its own, whose /dev/shm has so many KiB. Not every user may make one.
Command with_shared_memory(std::int64_t kib, const Command& command);
// Runs the command with a file system of so many KiB in an existing folder.
Command with_disk(const std::string& folder, std::int64_t kib, const Command& command);

class Workspace {
 public:
  Workspace();   // has "corpus.txt"
  ~Workspace();  // kills what still runs

  std::filesystem::path operator/(std::string_view name) const { return directory_ / name; }

  // Writes a job and returns its absolute path.
  std::string job(const std::string& text = kJob, std::string_view name = "job.textproto") const;

  // Starts or runs a command in the workspace's folder.
  std::unique_ptr<Process> start(Command command) const;
  Finished run(Command command, Seconds limit = Seconds(30)) const;
  // Writes `text` as a job, runs `hyperrun COMMAND JOB OPTION...` on it and waits for the end.
  Finished run_on_job(const std::string& command, const std::string& text,
                      const std::vector<std::string>& options = {}, Seconds limit = Seconds(30)) const;

  // Lines of a run's metrics.jsonl that have `key`, without the fields that depend on the clock.
  std::vector<nlohmann::json> metrics(std::string_view directory, const char* key) const;

  // Processes that runs in this workspace have started and that still exist.
  std::vector<pid_t> processes() const;
  // The process of this device of a run; 0 while there is none.
  pid_t device(int rank) const;
  // Kills the process of this rank, which must be there: kill(0) would end the test itself.
  void kill_device(int rank) const;
  // The controller that rank 0 of a foreign mpirun starts.
  pid_t controller() const;

  // Succeeds if there is no process and no shared memory, within a moment: a dead process disappears a little
  // later.
  ::testing::AssertionResult nothing_left(Seconds limit = Seconds(3)) const;

 private:
  std::vector<std::string> shared_memory() const;

  TemporaryDirectory directory_;
  std::set<std::string> shared_memory_before_;
};

}  // namespace hyperrun::testing

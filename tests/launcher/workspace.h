// A folder with a corpus, a small job and what runs of it leave behind; and everything that those runs
// must not leave behind: processes and shared memory.
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

// Two devices, data parallel, six steps of 0.14 million parameters: a run takes about a second.
extern const std::string kJob;

struct Edit {
  std::string from, to;
};
// The text with each `from`, which must be there exactly once, replaced.
std::string edited(std::string text, const std::vector<Edit>& edits);

// About 50 kB of English in `sentences` orders of a few sentences.
std::string english(std::size_t bytes);

Command hyperrun(const std::vector<std::string>& arguments);
// As a user calls it, also root.
Command mpirun(int ranks, const std::vector<std::string>& arguments,
               const std::vector<std::string>& options = {});

// In a namespace of its own, in which /dev/shm has so many KiB. Not everybody may make one.
Command with_shared_memory(std::int64_t kib, const Command& command);
// The same with a file system of so many KiB in a folder that is there.
Command with_disk(const std::string& folder, std::int64_t kib, const Command& command);

class Workspace {
 public:
  Workspace();   // has "corpus.txt"
  ~Workspace();  // kills what still runs

  std::filesystem::path operator/(std::string_view name) const { return directory_ / name; }

  // Writes a job and returns its absolute path.
  std::string job(const std::string& text = kJob, std::string_view name = "job.textproto") const;

  // In the workspace's folder.
  std::unique_ptr<Process> start(Command command) const;
  Finished run(Command command, Seconds limit = Seconds(30)) const;

  // Of a run's metrics.jsonl the lines that have `key`, without what is of the clock.
  std::vector<nlohmann::json> metrics(std::string_view directory, const char* key) const;

  // Processes that runs in this workspace have started and that are still there.
  std::vector<pid_t> processes() const;
  // The process that is this device of a run; 0 while there is none.
  pid_t device(int rank) const;
  // The controller that rank 0 of a foreign mpirun starts.
  pid_t controller() const;

  // No process, no shared memory; within a moment, as the dead are buried a little later.
  ::testing::AssertionResult nothing_left(Seconds limit = Seconds(3)) const;

 private:
  std::vector<std::string> shared_memory() const;

  TemporaryDirectory directory_;
  std::set<std::string> shared_memory_before_;
};

}  // namespace hyperrun::testing

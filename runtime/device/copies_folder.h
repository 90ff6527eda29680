// The folder in /dev/shm with a run's copies of its state:
//
//   /dev/shm/hyperrun-copies.UID.HASH/checkpoints/step-000012     a whole checkpoint
//                                                .slot-1.partial  one that is being filled
//
//                                                .run             locked by the run that goes on from them
//
// Whoever uses the folder holds a lock on it, which the kernel takes back when the process ends. A folder
// without a lock belongs to a run that was killed, and the next run removes it. Devices that end and find the
// run gone remove it at once.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace hyperrun {

inline constexpr const char* kSharedMemory = "/dev/shm";

// The folder of a program of the run in this directory. `program` is empty in a job of one program.
std::filesystem::path copies_folder(const std::filesystem::path& run_directory,
                                    const std::string& program = "",
                                    const std::filesystem::path& shm = kSharedMemory);

class CopiesFolder {
 public:
  enum class AtEnd { kRemove, kRemoveIfLast };

  // Makes the folder unless it is there, and locks it. At the end it is removed: by the run in any case, by a
  // device only if nobody else holds the lock. Throws kUnwritable.
  CopiesFolder(std::filesystem::path path, AtEnd at_end);
  CopiesFolder(const CopiesFolder&) = delete;
  CopiesFolder& operator=(const CopiesFolder&) = delete;
  ~CopiesFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }

 private:
  std::filesystem::path path_;
  AtEnd at_end_;
  int lock_ = -1, run_lock_ = -1;
};

// Removes this user's folders that nobody holds.
void remove_stale_copies(const std::filesystem::path& shm = kSharedMemory);

// Has remove_copies_of_gone_runs() look at this folder, whether or not this process has it.
void watch_copies(const std::filesystem::path& folder);

// Removes the watched folders whose run is gone. Others may still hold them: they end as well, and may be
// killed before they could. A run that was killed holds its lock for a moment: the function tries again until
// `limit` is over.
void remove_copies_of_gone_runs(std::chrono::milliseconds limit);

// Lets go of this process's folders, and removes those that nobody else holds. The process must end at once
// and not use them any more.
void leave_copies(const std::filesystem::path& shm = kSharedMemory);

}  // namespace hyperrun

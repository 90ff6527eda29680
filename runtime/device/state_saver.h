// Saves the state beside the steps:
//
//   devices   step 10 | copy | step 11 | step 12 | ...
//   writer                   | write the copy, flush, rename |
//
// The devices copy their parts into memory of device 0's host, which holds the files of the checkpoint as
// they will be on the disk. A thread of device 0's process then writes them. Devices on other hosts send
// their parts meanwhile. Where there is no memory for a copy, a save stops the steps as save_state() does.
//
// With `keeps_copies` the copies are themselves checkpoints, in a folder that outlives the process: a run
// that loses devices can go on from the last one without a disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/background_task.h"
#include "runtime/device/checkpoint_folder.h"
#include "runtime/device/copied_files.h"
#include "runtime/device/copies_folder.h"
#include "runtime/device/state_files.h"
#include "runtime/device/state_image.h"

namespace hyperrun {

struct SaverOptions {
  std::filesystem::path copies;  // copies_folder(), the same on all devices
  bool keeps_copies = false;
  KeptCheckpoints kept;                                  // of the checkpoints on the disk
  std::function<void(const std::string& problem)> warn;  // called by device 0, and by the thread that writes
};

class StateSaver {
 public:
  // All that the context refers to must outlive the saver.
  StateSaver(const StateContext& context, SaverOptions options);

  struct Target {
    std::filesystem::path directory;
    bool is_part = false;  // the directory lies in one that appears at once, and is filled in place
  };
  enum class Return {
    kOnceCopied,  // a failure to write is told as a warning, that of a part by written()
    kOnceWritten  // throws kUnwritable on device 0 if the checkpoint cannot be written
  };

  // Saves. Collective, as are copy() and save(). `fault`: the reason why nothing can be written, an injected
  // one; empty: there is none.
  void save(const Target& target, const Unsplit& unsplit, Return when, const std::string& fault = {});

  // Waits on device 0 until the last save is written. Returns why its part is not; empty: it is.
  std::string written();

  // Copies the state, to be found under the name of its step. Nothing happens while the writer still needs
  // the memory, or if there is not enough of it.
  void copy(const Unsplit& unsplit);

 private:
  // Room for one copy of the state.
  struct Slot {
    std::optional<CopiedFiles> files;
    std::filesystem::path folder;  // where its files are; only device 0 keeps it up to date
  };
  // A part that this device brings to its place in the files.
  struct Placed {
    StateImage::Part part;
    std::vector<StateImage::Run> runs;
  };

  bool is_root() const { return context_.world.device() == 0; }
  bool near_root(int device) const;
  bool places(int device) const;
  std::filesystem::path unfinished(std::size_t slot) const;
  std::optional<std::size_t> fill(bool may_wait);
  std::optional<std::size_t> choose_slot(bool may_wait);
  void prepare_slot(std::size_t slot);
  void take_folder();
  bool open_slot(std::size_t slot);
  void list_parts();
  void copy_parts(const Slot& slot);
  void place(const Placed& placed, std::int64_t at, std::int64_t n, const std::byte* data, const Slot& slot);
  void complete(std::size_t slot, const Unsplit& unsplit);
  void write(std::size_t slot, const Target& target, const Unsplit& unsplit) const;
  void write_files(std::size_t slot, const std::filesystem::path& directory, const Unsplit& unsplit) const;
  void warn(const std::string& problem) const;

  const StateContext context_;
  const SaverOptions options_;
  std::optional<StateImage> image_;  // made at the first copy, as is the list
  std::vector<Placed> placed_;
  std::vector<Slot> slots_;
  std::unique_ptr<CopiesFolder> folder_;         // of device 0, while its names are needed
  std::filesystem::path inherited_;              // the newest copy of the processes before, or empty
  std::optional<std::size_t> newest_, written_;  // slots with the last copy, and with the last to be written
  bool has_copied_ = false, told_no_room_ = false;
  std::string problem_;  // why the last part is not written; the thread sets it before it ends
  BackgroundTask writer_;
};

}  // namespace hyperrun

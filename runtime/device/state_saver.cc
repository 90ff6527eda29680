#include "runtime/device/state_saver.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "memory/host_memory.h"
#include "runtime/base/error.h"
#include "runtime/device/state_transfer.h"
#include "runtime/model/checkpoint/files.h"

namespace hyperrun {

namespace fs = std::filesystem;

StateSaver::StateSaver(const StateContext& context, SaverOptions options)
    : context_(context), options_(std::move(options)) {
  // A copy that is kept must not be overwritten before the next one is whole.
  slots_.resize(options_.keeps_copies ? 2 : 1);
  if (options_.keeps_copies) watch_copies(options_.copies);
}

// ---- The two operations

void StateSaver::save(const Target& target, const Unsplit& unsplit, Return when, const std::string& fault) {
  // Who waits for the file anyway, and has no memory for a copy yet, takes none.
  const bool needs_copy = when == Return::kOnceCopied || options_.keeps_copies || has_copied_;
  const std::optional<std::size_t> slot = needs_copy ? fill(true) : std::nullopt;
  const auto guarded = [this, target, when](auto work) {
    try {
      work();
      if (is_root() && !target.is_part) remove_superfluous(target.directory.parent_path(), options_.kept);
    } catch (const std::exception& e) {
      if (when == Return::kOnceWritten) throw;
      const auto* const error = dynamic_cast<const Error*>(&e);
      const std::string cause = error != nullptr ? error->cause() : e.what();
      if (target.is_part)
        problem_ = cause;
      else
        warn(not_saved(target.directory, cause));
    }
  };
  // All devices know of an injected fault; device 0 tells it.
  const auto refuse = [this, target, fault] {
    if (is_root()) throw Error(Code::kUnwritable, fault).at(target.directory.string());
  };
  writer_.wait();
  problem_.clear();
  if (!slot) {
    guarded([&] {
      if (!fault.empty()) return refuse();
      target.is_part ? save_part(context_, target.directory, unsplit)
                     : save_state(context_, target.directory, unsplit);
    });
    return;
  }
  if (!is_root()) return;
  complete(*slot, unsplit);
  const auto work = [=, this] { guarded([&] { fault.empty() ? write(*slot, target, unsplit) : refuse(); }); };
  written_ = slot;
  if (when == Return::kOnceWritten)
    work();
  else
    writer_.begin(work);
}

std::string StateSaver::written() {
  writer_.wait();
  return problem_;
}

void StateSaver::copy(const Unsplit& unsplit) {
  const std::optional<std::size_t> slot = fill(false);
  if (slot && is_root()) complete(*slot, unsplit);
}

// ---- Filling a slot

// All devices copy their parts into a slot that device 0 chooses. nullopt: there is none.
std::optional<std::size_t> StateSaver::fill(bool may_wait) {
  if (!image_) list_parts();
  const std::optional<std::size_t> chosen = is_root() ? choose_slot(may_wait) : std::nullopt;
  const int number = sum_of_all(context_, chosen ? static_cast<int>(*chosen) + 1 : 0);
  if (number == 0) return std::nullopt;
  const auto slot = static_cast<std::size_t>(number - 1);
  const bool mapped = !near_root(context_.world.device()) || open_slot(slot);
  copy_parts(slots_[slot]);
  if (sum_of_all(context_, mapped ? 0 : 1) > 0) return std::nullopt;
  has_copied_ = true;
  // Every process has mapped the only slot: without its name nothing can stay behind.
  if (!options_.keeps_copies) folder_.reset();
  return slot;
}

// Chooses the slot on device 0, and makes it ready to be opened by the others.
std::optional<std::size_t> StateSaver::choose_slot(bool may_wait) {
  std::size_t slot = 0;
  if (options_.keeps_copies && newest_) slot = 1 - *newest_;
  if (written_ == slot && writer_.busy()) {
    if (!may_wait) return std::nullopt;
    writer_.wait();
  }
  try {
    prepare_slot(slot);
    return slot;
  } catch (const Error& e) {
    slots_[slot].files.reset();
    if (!std::exchange(told_no_room_, true))
      warn("no copies of the state: " + e.cause() + "; every save stops the steps");
    return std::nullopt;
  }
}

void StateSaver::prepare_slot(std::size_t number) {
  Slot& slot = slots_[number];
  const bool known = slot.files.has_value();
  if (known && !options_.keeps_copies) return;
  if (!folder_) take_folder();
  const fs::path folder = unfinished(number);
  try {
    if (known) {
      if (slot.folder != folder) fs::rename(slot.folder, folder);
    } else {
      const Bytes needed(image_->bytes()), left = available_memory();
      if (needed > left)
        throw Error(Code::kUnwritable, fmt::format("it takes {}, and {} of this host's memory are left",
                                                   to_string(needed), to_string(left)));
      fs::remove_all(folder);
      fs::create_directories(folder);
      slot.files.emplace(CopiedFiles::create(folder, *image_));
    }
  } catch (const fs::filesystem_error& e) {
    throw Error(Code::kUnwritable, e.what());
  }
  slot.folder = folder;
}

// Takes over the folder, with the newest copy of the processes before, until there is a newer one.
void StateSaver::take_folder() {
  remove_stale_copies(options_.copies.parent_path());
  folder_ = std::make_unique<CopiesFolder>(options_.copies, CopiesFolder::AtEnd::kRemoveIfLast);
  std::vector<fs::path> left;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_->checkpoints(), error))
    left.push_back(entry.path());
  std::ranges::sort(left, {}, saved_step);
  if (!left.empty() && saved_step(left.back()) >= 0) {
    inherited_ = left.back();
    left.pop_back();
  }
  for (const fs::path& old : left) fs::remove_all(old, error);
}

fs::path StateSaver::unfinished(std::size_t slot) const {
  return options_.copies / "checkpoints" / fmt::format(".slot-{}.partial", slot);
}

bool StateSaver::open_slot(std::size_t number) {
  Slot& slot = slots_[number];
  if (slot.files) return true;
  try {
    slot.files.emplace(CopiedFiles::open(unfinished(number), *image_));
    return true;
  } catch (const Error&) {  // device 0 then saves without a copy
    return false;
  }
}

// ---- Copying

bool StateSaver::near_root(int device) const {
  const std::vector<int>& host_of = context_.world.world().topology().host_of;
  const auto host = [&](int d) { return host_of[static_cast<std::size_t>(context_.world.rank_of(d))]; };
  return host(device) == host(0);
}

// Whether this device brings the parts of a device to their places. Those of device 0's host are copied by
// their own devices, at the same time. The others are sent to device 0.
bool StateSaver::places(int device) const {
  return near_root(device) ? device == context_.world.device() : is_root();
}

void StateSaver::list_parts() {
  const int own = context_.world.device();
  image_.emplace(
      context_.plan, [this](int device) { return near_root(device); },
      [&](int device) { return device == own || places(device); });
  for (const StateImage::Part& part : image_->parts())
    if (places(part.device)) placed_.push_back({part, image_->runs(part)});
}

void StateSaver::copy_parts(const Slot& slot) {
  const int own = context_.world.device();
  const Staging stage = staging(context_);
  auto next = placed_.begin();
  for (const StateImage::Part& part : image_->parts()) {
    const bool sent = !near_root(part.device), here = part.device == own, placed = places(part.device);
    const StateTensor& t = *part.tensor;
    // Without a stop between, HBM is copied as a whole.
    const std::int64_t step = sent || t.tier != Tier::kHbm ? stage.bytes : t.bytes.value;
    for (std::int64_t at = 0; at < t.bytes.value; at += step) {
      const std::int64_t n = std::min(step, t.bytes.value - at);
      std::byte* data = here ? fetch(context_, t, at, n, stage) : stage.data;
      if (sent && here) transfer(context_, Collective::kSend, data, n, 0);
      if (sent && placed) transfer(context_, Collective::kRecv, data, n, part.device);
      if (placed) place(*next, at, n, data, slot);
    }
    if (placed) ++next;
  }
}

// Brings bytes [at, at + n) of a part to their places.
void StateSaver::place(const Placed& placed, std::int64_t at, std::int64_t n, const std::byte* data,
                       const Slot& slot) {
  if (!slot.files) return;
  const std::span<std::byte> file = slot.files->file(placed.part.file);
  auto run = std::ranges::partition_point(placed.runs,
                                          [at](const StateImage::Run& r) { return r.part + r.bytes <= at; });
  for (; run != placed.runs.end() && run->part < at + n; ++run) {
    const std::int64_t from = std::max(run->part, at), to = std::min(run->part + run->bytes, at + n);
    std::memcpy(file.data() + run->there + from - run->part, data + from - at,
                static_cast<std::size_t>(to - from));
  }
}

// ---- What becomes of a copy

// Makes a checkpoint of a copy that is kept, in place of those before.
void StateSaver::complete(std::size_t number, const Unsplit& unsplit) {
  if (!options_.keeps_copies) return;
  Slot& slot = slots_[number];
  try {
    write_unsplit(slot.folder, unsplit);
    const fs::path name = folder_->checkpoints() / checkpoint_name(unsplit.trainer.next_step);
    if (fs::exists(name)) remove_directory(name);
    fs::rename(slot.folder, name);
    slot.folder = name;
    newest_ = number;
    if (const fs::path old = std::exchange(inherited_, {}); !old.empty() && old != name)
      remove_directory(old);
  } catch (const std::exception& e) {  // the copy before is still there
    warn(fmt::format("the copy of step {} is not kept: {}", unsplit.trainer.next_step, e.what()));
  }
}

void StateSaver::write(std::size_t slot, const Target& target, const Unsplit& unsplit) const {
  if (target.is_part) {
    std::error_code error;
    fs::create_directories(target.directory, error);
    if (error) throw Error(Code::kUnwritable, error.message()).at(target.directory.string());
    return write_files(slot, target.directory, unsplit);
  }
  AtomicDirectory whole(target.directory);
  write_files(slot, whole.path(), unsplit);
  whole.commit();
}

void StateSaver::write_files(std::size_t slot, const fs::path& directory, const Unsplit& unsplit) const {
  constexpr std::size_t kAtOnce = std::size_t{8} << 20;
  for (std::size_t f = 0; f < image_->files().size(); ++f) {
    const std::span<const std::byte> bytes = slots_[slot].files->file(f);
    AtomicFile file(directory / image_->files()[f].name, std::ssize(bytes));
    for (std::size_t at = 0; at < bytes.size(); at += kAtOnce)
      file.write_pages(static_cast<std::int64_t>(at),
                       bytes.subspan(at, std::min(kAtOnce, bytes.size() - at)));
    file.commit();
  }
  write_unsplit(directory, unsplit);
}

void StateSaver::warn(const std::string& problem) const {
  if (options_.warn) options_.warn(problem);
}

}  // namespace hyperrun

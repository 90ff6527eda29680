#include "runtime/rank/rank_process.h"

#include <fmt/core.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <deque>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/flags.h"
#include "runtime/base/log.h"
#include "runtime/control/auth.h"
#include "runtime/control/device_link.h"
#include "runtime/device/copies_folder.h"
#include "runtime/process/spawn.h"
#include "runtime/process/stale_segments.h"
#include "runtime/rank/device_progress.h"
#include "runtime/rank/fault.h"
#include "runtime/rank/local_devices.h"
#include "runtime/rank/mpi_start.h"
#include "runtime/report/version.h"

namespace hyperrun {
namespace {

constexpr double kPrepareSeconds = 3600;  // limit until the controller is ready; it may train a tokenizer

struct Address {
  std::string controller, secret;
};

// Whether mpirun, our parent, writes to a terminal. Our own output says nothing: mpirun gives its ranks a
// pseudo-terminal wherever its own output goes.
bool launcher_writes_to_terminal() {
  std::array<char, 64> target{};
  const std::string stdout_of_parent = fmt::format("/proc/{}/fd/1", getppid());
  if (readlink(stdout_of_parent.c_str(), target.data(), target.size() - 1) <= 0) return false;
  const std::string_view path = target.data();
  return path.starts_with("/dev/pts/") || path.starts_with("/dev/tty");
}

// The controller of a run under a foreign mpirun, started by rank 0 as a process of its own.
class ForeignController {
 public:
  explicit ForeignController(std::vector<std::string> argv) {
    argv.insert(argv.end(), {"--world", std::to_string(world_size_from_environment())});
    secret_ = control::make_secret();
    std::vector<std::pair<std::string, std::string>> environment{{"HYPERRUN_SECRET", secret_}};
    if (!launcher_writes_to_terminal()) environment.emplace_back("TERM", "dumb");
    spawned_ = process::spawn_controller_process(argv, environment, kPrepareSeconds);
  }

  bool started() const { return !spawned_.address.empty(); }
  int status() const { return spawned_.status; }
  Address address() const { return {spawned_.address, secret_}; }
  int wait() const { return process::wait_for_controller(spawned_, 30); }

 private:
  process::SpawnedController spawned_;
  std::string secret_;
};

void broadcast(std::string& text) {
  auto size = static_cast<int>(text.size());
  MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(size));
  MPI_Bcast(text.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
}

// The code of the error that ended the run. If the controller aborted the run, this device's own error is
// only a consequence.
Code cause_of(control::DeviceLink& link, const Error& own) {
  if (!link.aborted()) return own.code();
  try {
    link.next(link.devices().first);
  } catch (const Error& cause) {
    return cause.code();
  }
  return own.code();
}

// The exception that is being handled.
Error current_error() {
  try {
    throw;
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    return Error(Code::kInternal, e.what());
  }
}

// Ends the process without MPI_Finalize. mpirun may be gone, so the process removes its shared memory itself.
[[noreturn]] void leave(Code why) {
  process::remove_segments_of_own_job();
  leave_copies();
  _exit(static_cast<int>(exit_code(why)));
}

// Broadcasts the controller's address: rank 0 may be the only rank that knows it.
void share(Address& address) {
  broadcast(address.controller);
  broadcast(address.secret);
}

void require_world(int rank, int size) {
  int mpi_rank = 0, mpi_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
  if (mpi_rank != rank || mpi_size != size)
    throw Error(Code::kMpi, fmt::format("the launcher made this process rank {} of {}, MPI says {} of {}",
                                        rank, size, mpi_rank, mpi_size))
        .fix("take the mpirun of the Open MPI that hyperrun was built with");
}

// Joins the controller, and serves it until the run ends. A rank that knows the controller joins before it
// starts MPI, so that the controller can name a rank that hangs there. After a failure the function does not
// return: MPI_Finalize would wait for the other ranks.
void serve_controller(Address address, int rank) {
  std::deque<DeviceProgress> progress;
  std::atomic<bool> cancel{false}, started{false};
  control::DeviceLinkOptions options;
  options.rank = rank;
  options.world_size = world_size_from_environment();
  options.version = std::string(version());
  options.handle_signals = true;
  std::optional<control::DeviceLink> link;
  options.place = [&](int device) {
    if (!started) return std::string("starting MPI");
    const std::int64_t last = link->status(device).last_instruction.load(std::memory_order_relaxed);
    return progress[static_cast<std::size_t>(device - link->devices().first)].describe(last);
  };
  options.on_abort = [&cancel, &started, rank](const Error& why) {
    cancel = true;
    // The controller may be gone because its process was killed: then nobody goes on from the copies, and
    // mpirun may kill this process soon.
    if (why.code() == Code::kControl) remove_copies_of_gone_runs(std::chrono::milliseconds(500));
    // The controller prints its own errors. An error with a place was found by this device.
    if (rank == 0 && !why.place().empty()) std::fprintf(stderr, "%s\n", why.what());
    if (!started) leave(why.code());  // the main thread is inside MPI_Init and cannot be interrupted
  };
  const auto join = [&] {
    options.controller = address.controller;
    options.secret = address.secret;
    link.emplace(options);
  };
  const auto fail = [&](int device) {
    const Error error = current_error();
    link->fail(device, error);
    leave(cause_of(*link, error));
  };
  try {
    if (!address.controller.empty()) join();
    if (link) commit_at_start(flags().fault, rank, [&] { link->cut(); });
    start_mpi();
    require_world(rank, options.world_size);
    share(address);
    if (!link) join();
    progress.resize(static_cast<std::size_t>(link->devices().count));
    started = true;
    {
      LocalDevices devices(*link, progress, cancel);
      devices.serve(fail);
    }
    MPI_Finalize();
    link->close();
  } catch (...) {
    if (link) fail(-1);
    const Error error = current_error();
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    leave(error.code());
  }
}

}  // namespace

int run_rank(const std::vector<std::string>& controller) {
  const int rank = rank_from_environment();
  init_log("rank " + std::to_string(rank));
  Address address{flags().controller, flags().secret};
  std::optional<ForeignController> foreign;
  if (rank == 0 && address.controller.empty()) {
    foreign.emplace(controller);
    if (!foreign->started()) return foreign->status();
    address = foreign->address();
  }
  serve_controller(std::move(address), rank);
  return foreign ? foreign->wait() : 0;
}

}  // namespace hyperrun

// The process of one rank: joins its controller, and is a device until the run ends.
#include <fmt/core.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/flags.h"
#include "runtime/base/log.h"
#include "runtime/control/auth.h"
#include "runtime/control/device_link.h"
#include "runtime/process/spawn.h"
#include "runtime/process/stale_segments.h"
#include "runtime/report/version.h"
#include "runtime/run/device.h"
#include "runtime/run/device_progress.h"
#include "runtime/run/mpi_start.h"
#include "runtime/run/start.h"

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
  explicit ForeignController(const RunArguments& arguments) {
    std::vector<std::string> argv{"", "controller", arguments.job, "--world",
                                  std::to_string(world_size_from_environment())};
    for (const auto& [option, value] :
         {std::pair{"--run-dir", arguments.directory}, {"--resume", arguments.resume}})
      if (!value.empty()) argv.insert(argv.end(), {option, value});
    if (arguments.quiet) argv.emplace_back("--quiet");
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
    link.next();
  } catch (const Error& cause) {
    return cause.code();
  }
  return own.code();
}

// Ends the process without MPI_Finalize. mpirun may be gone, so the process removes its shared memory itself.
[[noreturn]] void leave(Code why) {
  process::remove_segments_of_own_job();
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
  control::DeviceStatus status;
  DeviceProgress progress;
  std::atomic<bool> cancel{false}, started{false};
  control::DeviceLinkOptions options;
  options.rank = rank;
  options.world_size = world_size_from_environment();
  options.version = std::string(version());
  options.handle_signals = true;
  options.status = &status;
  options.place = [&] {
    if (!started) return std::string("starting MPI");
    return progress.describe(status.last_instruction.load(std::memory_order_relaxed));
  };
  options.on_abort = [&cancel, &started, rank](const Error& why) {
    cancel = true;
    // The controller prints its own errors. An error with a place was found by this device.
    if (rank == 0 && !why.place().empty()) std::fprintf(stderr, "%s\n", why.what());
    if (!started) leave(why.code());  // the main thread is inside MPI_Init and cannot be interrupted
  };
  std::optional<control::DeviceLink> link;
  const auto join = [&] {
    options.controller = address.controller;
    options.secret = address.secret;
    link.emplace(options);
  };
  try {
    if (!address.controller.empty()) join();
    start_mpi();
    started = true;
    require_world(rank, options.world_size);
    share(address);
    if (!link) join();
    {
      Device device(*link, status, progress, cancel);
      device.serve();
    }
    MPI_Finalize();
    link->close();
  } catch (const Error& e) {
    if (!link) std::fprintf(stderr, "device %d: %s\n", rank, e.what());
    if (link) link->fail(e);
    leave(link ? cause_of(*link, e) : e.code());
  } catch (const std::exception& e) {
    const Error error(Code::kInternal, e.what());
    if (link) link->fail(error);
    leave(error.code());
  }
}

}  // namespace

int run_device(const RunArguments& arguments) {
  const int rank = rank_from_environment();
  init_log("device " + std::to_string(rank));
  Address address{flags().controller, flags().secret};
  std::optional<ForeignController> foreign;
  if (rank == 0 && address.controller.empty()) {
    foreign.emplace(arguments);
    if (!foreign->started()) return foreign->status();
    address = foreign->address();
  }
  serve_controller(std::move(address), rank);
  return foreign ? foreign->wait() : 0;
}

}  // namespace hyperrun

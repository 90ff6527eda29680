// The link of a process to its controller, for all devices that it hosts. It owns a thread that receives
// commands, sends reports and heartbeats, and ends the process when the run ends. When the controller is gone
// or aborts the run, on_abort is called. A process that still lives `grace` later is ended, whatever its
// other threads do. A thread on its own stack does that, so it outlives the DeviceLink.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/device_block.h"
#include "runtime/base/error.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::control {

// The progress of a device, written by its executor and read by heartbeats.
struct DeviceStatus {
  std::atomic<std::int64_t> invocation{-1};        // the invocation being executed
  std::atomic<std::int64_t> last_instruction{-1};  // the last instruction finished in it
};

struct DeviceLinkOptions {
  std::string controller;  // "host:port", or several separated by commas, tried in turn
  std::string secret;
  std::int32_t rank = 0;
  std::int32_t world_size = 1;
  std::string version;
  // Limit of joining. None: twice start_seconds(), which leaves the verdict to the controller, as it says
  // more.
  std::optional<double> connect_seconds;
  // Limit of a connection to one address: one that leads nowhere must not hold up the next.
  double attempt_seconds = 2;
  // First limit of the silence of whoever has accepted the connection, if there are several addresses. It
  // doubles with each round: a stranger at one address must not hold up the others for ever, and a controller
  // under load may be slow.
  double patience_seconds = 10;
  std::chrono::milliseconds grace{1000};
  // Silence of the controller after which the device gives it up. It is long: a user may have stopped the
  // controller with ctrl-Z.
  std::chrono::milliseconds silence{600000};
  std::size_t max_frame = std::size_t{1} << 30;
  std::string machine;  // empty: machine_id()

  bool handle_signals = false;  // SIGINT, SIGTERM and SIGHUP are told to the controller before they end us

  // The device's place in its work, as text; called on the link's thread. It may be empty.
  std::function<std::string(int device)> place;
  std::function<void(const Error&)>
      on_abort;                        // sets the cancel token; called on the link's thread, at most once
  std::function<void(int)> terminate;  // empty: _exit
};

class DeviceLink {
 public:
  // Connects, retrying until connect_seconds, and joins. Throws kControl if there is no controller, the
  // secret is wrong, or the controller rejects the process.
  explicit DeviceLink(DeviceLinkOptions options);
  // The controller takes the devices for lost unless close() was called before.
  ~DeviceLink();
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  int devices_of_run() const;
  DeviceBlock devices() const;  // devices of this process; all `device` below are among them
  DeviceStatus& status(int device);

  // Returns the device's next command; blocks. After an abort it throws the reason, at once. The first call
  // tells the controller that the process is ready: it may have joined long before. Programs are given to the
  // first device alone, for all of them.
  tasks::Command next(int device);
  // Waits for `limit` at most; nullopt: no command has come.
  std::optional<tasks::Command> next_within(int device, std::chrono::nanoseconds limit);
  // `wake` is called on the link's thread when a device has got a command, or the run is aborted.
  void set_wake(std::function<void(int device)> wake);

  // Sends a report. Thread-safe, never blocks.
  void report(int device, tasks::InvocationDone done);

  // Tells the controller why a device (-1: the whole process) cannot go on. Returns when that is sent (or
  // after a second). A consequence of an abort is not told. The caller then ends the process.
  void fail(int device, const Error& error);

  // Says goodbye after a Shutdown and ends the connection. It should be called as late as possible, after
  // MPI_Finalize, so that a hang there is still seen.
  void close();

  // Ends the connection without a word, as a broken network does. For tests and injected faults.
  void cut();

  bool aborted() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun::control

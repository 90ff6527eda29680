// A device's line to the controller. It owns a thread that receives commands, sends reports and
// heartbeats, and sees to it that the process ends when the run does: when the controller is gone or
// aborts the run, on_abort is called, and a process that is not gone `grace` later is ended, whatever
// its other threads do. A thread on its own stack does that, so it outlives the DeviceLink.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::control {

// Written by the device's executor, read by heartbeats.
struct DeviceStatus {
  std::atomic<std::int64_t> invocation{-1};        // being executed
  std::atomic<std::int64_t> last_instruction{-1};  // finished in it
};

struct DeviceLinkOptions {
  std::string controller;  // "host:port", several separated by commas: tried in turn
  std::string secret;
  std::int32_t rank = 0;
  std::int32_t world_size = 1;
  std::string version;
  double connect_seconds = 30;
  std::chrono::milliseconds grace{1000};
  // Of the controller, after which it is given up. Long: a user may have stopped it with ctrl-Z.
  std::chrono::milliseconds silence{600000};
  std::size_t max_frame = std::size_t{1} << 30;
  std::string machine;  // empty: found out (machine_id)

  bool handle_signals = false;  // SIGINT, SIGTERM and SIGHUP are told to the controller before they end us

  const DeviceStatus* status = nullptr;        // outlives the link
  std::function<std::string()> place;          // where it is, in words; called on the link's thread
  std::function<void(const Error&)> on_abort;  // on the link's thread, at most once: set the cancel token
  std::function<void(int)> terminate;          // empty: _exit
};

class DeviceLink {
 public:
  // Connects, retrying until connect_seconds, and joins. Throws kControl: no controller, wrong
  // secret, rejected with the controller's reason.
  explicit DeviceLink(DeviceLinkOptions options);
  // Without close() before, the controller takes the device for lost.
  ~DeviceLink();
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  // The next command; blocks. After an abort it throws the reason, at once. The first call tells the
  // controller that the device is ready: it may have joined long before.
  Command next();
  // The same, waiting for `limit` at most: none has come then.
  std::optional<Command> next_within(std::chrono::nanoseconds limit);

  // Sends a report. Thread-safe, never blocks.
  void report(InvocationDone done);

  // Tells the controller why this device cannot go on; returns when that is sent (or after a second).
  // A consequence of an abort is not told. The caller then ends the process.
  void fail(const Error& error);

  // In answer to Shutdown: says goodbye and ends the connection. To be called as late as possible,
  // after MPI_Finalize, so that a hang there is still seen.
  void close();

  bool aborted() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun::control

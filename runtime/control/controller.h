// The controller: waits for the devices of a run, sends them their programs once and invocations
// ahead of time, collects their reports, and watches over them.
//
//   device    ---- connect ---->  controller
//             <--- Challenge ---            nonce
//             ---- Hello ------>            identity, own nonce, HMAC of all of it under the secret
//             <--- Welcome -----            HMAC back (or Reject with the reason)
//             ---- Ready ------>            it has got through the start of MPI
//             <--- LoadProgram* -- Invocation* ----
//             ---- InvocationDone* -- Heartbeat* -->
//             <--- Shutdown ----   ---- Goodbye --->
//
// A device is lost when its connection ends, hung when it is silent for heartbeat_seconds, failed when
// it says so. Of several such events within a moment the cause is told and the consequences are not
// (diagnosis.h). Then all devices are aborted, those that are stopped are killed, and run() returns,
// within about 2.5 seconds of the event.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tasks/driver.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::control {

struct ControllerOptions {
  std::int32_t devices = 1;
  std::string secret;        // of the run; make_secret()
  std::string version;       // devices must state the same
  bool loopback = true;      // false: listen on all interfaces
  double join_seconds = 60;  // all devices must be ready by then
  double heartbeat_seconds = 2.0;
  double drain_seconds = 30;  // after Shutdown all devices must be gone by then
  double stall_seconds = 0;   // all devices alive but no instruction finished for this long; 0: no limit
  std::int32_t window = kWindow;
  std::size_t max_frame = std::size_t{1} << 30;  // bytes of one message
  bool handle_signals = false;                   // SIGINT, SIGTERM and SIGHUP end the run
};

struct Outcome {
  std::optional<Error> error;       // why the run failed
  int signal = 0;                   // that ended it, or 0
  std::vector<DeviceInfo> devices;  // who had joined
  bool all_joined = false;
  bool all_done = false;  // every invocation, whether or not the devices then ended well

  bool ok() const { return !error && signal == 0; }
  int exit_status() const;     // 0, the error's exit code, or 128 + signal
  std::string reason() const;  // the error's text, or "interrupted by signal 2 (Interrupt)"; empty when ok
};

class Controller {
 public:
  // Listens at once. Throws kControl when it cannot.
  explicit Controller(ControllerOptions options);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // "127.0.0.1:4711", or one such address for each interface, separated by commas.
  const std::string& address() const;

  // Runs to the end of the run, once. Never throws what a device, a driver or a network caused: that
  // is the outcome.
  Outcome run(Driver& driver);

  // The process whose children the devices of this host are, so that those are known that never join: the
  // sooner it is told, the more of them. Before run().
  void launcher_started(int pid);
  // The launcher of the devices has ended before them. Thread-safe.
  void launcher_ended(Error cause);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun::control

// The controller waits for the devices of a run, sends them their programs once and invocations ahead of
// time, collects their reports, and watches over them.
//
//   device    ---- connect ---->  controller
//             <--- Challenge ---            nonce
//             ---- Hello ------>            identity, own nonce, HMAC of all of it under the secret
//             <--- Welcome -----            HMAC back (or Reject with the reason)
//             ---- Ready ------>            the device has got through the start of MPI
//             <--- LoadProgram* -- Invocation* ----
//             ---- InvocationDone* -- Heartbeat* -->
//             <--- Shutdown ----   ---- Goodbye --->
//
// A process hosts one or several devices and has one connection for all of them. A device is lost when its
// connection ends, hung when it is silent for heartbeat_seconds, failed when it
// says so. Of several such events within a moment the controller names the cause and not the consequences
// (diagnosis.h). Then all devices are aborted, stopped ones are killed, and run() returns, within about 2.5
// seconds of the event.
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
  std::int32_t ranks = 0;              // processes that host the devices (device_block.h); 0: one for each
  std::string secret;                  // the run's secret, from make_secret()
  std::string version;                 // the version that devices must have, too
  bool loopback = true;                // false: listen on all interfaces
  std::optional<double> join_seconds;  // limit until all devices are ready; none: start_seconds()
  double heartbeat_seconds = 2.0;
  double drain_seconds = 30;  // limit from Shutdown until all devices are gone
  double stall_seconds = 0;   // limit of a time in which all live and no instruction finishes; 0: none
  std::int32_t window = tasks::kWindow;
  std::size_t max_frame = std::size_t{1} << 30;  // bytes of one message
  bool handle_signals = false;                   // SIGINT, SIGTERM and SIGHUP end the run
};

struct Outcome {
  std::optional<Error> error;              // the reason why the run failed
  int signal = 0;                          // signal that ended the run, or 0
  std::vector<tasks::DeviceInfo> devices;  // devices that had joined
  bool all_joined = false;
  bool any_started = false;       // a rank has joined, or was seen on this host
  bool all_done = false;          // every invocation is done, whether or not the devices then ended well
  bool launcher_stopped = false;  // all is done, and the launcher is stopped: it could not end

  bool ok() const { return !error && signal == 0; }
  int exit_status() const;     // 0, the error's exit code, or 128 + signal
  std::string reason() const;  // the error's text, or "interrupted by signal 2 (Interrupt)"; empty when ok
};

class Controller {
 public:
  // Listens at once. Throws kControl if it cannot.
  explicit Controller(ControllerOptions options);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // "127.0.0.1:4711", or one such address for each interface, separated by commas.
  const std::string& address() const;

  // Runs to the end of the run, once. Never throws an error caused by a device, a driver or the network: that
  // is the outcome.
  Outcome run(tasks::Driver& driver);

  // Names the process whose children are this host's devices, so that devices that never join are known. The
  // sooner it is called, the more of them are found. It must be called before run().
  void launcher_started(int pid);
  // Says that the launcher of the devices has ended before them. Thread-safe.
  void launcher_ended(Error cause);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun::control

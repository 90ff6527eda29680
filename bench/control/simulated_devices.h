// A thousand devices in one thread: each joins by the real handshake, speaks the real protocol, and takes a
// given time for every invocation, one after the other.
#pragma once

#include <cstdint>
#include <string>

namespace hyperrun::bench {

struct DevicesSpec {
  std::string controller, secret;
  std::int32_t devices = 0;
  std::int64_t work_ns = 0;    // time of an invocation
  double warm_up_seconds = 0;  // from the first invocation on; not counted
};

// Figures of all devices, between the end of the warm-up and the last invocation.
struct DevicesResult {
  std::int64_t invocations = 0;
  std::int64_t waited = 0;       // invocations that began later than the one before had ended
  double busy_seconds = 0;       // time at work
  double idle_seconds = 0;       // time between invocations
  double worst_device_idle = 0;  // idle share of time of the device with the largest
  double longest_wait_seconds = 0;
};

// Runs to the controller's Shutdown. Throws Error if the run fails.
DevicesResult run_devices(const DevicesSpec& spec);

}  // namespace hyperrun::bench

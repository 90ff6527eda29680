// What fails, how often, and what it takes to go on: the plain values of proto/faults.proto, whose comments
// are the reference of the fields. Times are in seconds, rates in bytes a second.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

enum class FaultKind : std::uint8_t { kDevice, kHost, kSwitch, kSoftware };
inline constexpr std::size_t kModelledFaults = 4;

// Devices that fail together: one device, a host, what hangs on a switch.
struct FaultUnit {
  double mtbf = 0;           // mean time between failures of one unit; 0: it never fails
  std::int32_t devices = 1;  // devices that one failure takes
  double repair = 86400;     // until the devices are back
  double lasting = 1;        // share of failures that need a repair; after the others a restart suffices

  bool operator==(const FaultUnit&) const = default;
};

// Faults of the software after which a restart suffices, for each device.
struct SoftwareFault {
  double mtbf = 0;  // 0: there are none

  bool operator==(const SoftwareFault&) const = default;
};

// The phases between a fault and the first step that is repeated.
struct FaultDelays {
  double detection = 10;   // until the loss is known
  double reaction = 1800;  // until a person acts, where one has to
  double start = 30;       // of processes
  double compile = 30;
  double join = 30;  // connecting all devices

  double starting() const { return start + compile + join; }
  bool operator==(const FaultDelays&) const = default;
};

struct FaultStorage {
  double bandwidth = 0;         // of all devices together, each way
  double device_bandwidth = 0;  // of one device; 0: no bound of its own

  bool operator==(const FaultStorage&) const = default;
};

// How a checkpoint is written.
struct FaultSaves {
  bool beside = false;  // steps go on while it is written
  double snapshot = 0;  // bytes/s of a device to its host's memory, while steps stand still; 0: takes no time
  double share = 0.01;  // share of the writing by which steps become longer meanwhile
  double write_time = 0;  // in place of bytes over bandwidth; 0: from the bytes
  double read_time = 0;

  bool operator==(const FaultSaves&) const = default;
};

// Copies of the state in another host's memory.
struct FaultCopies {
  double bandwidth = 10e9;   // of a device
  double share = 0.1;        // share of the copying by which steps become longer
  double disk_every = 3600;  // training time between the checkpoints that are written nevertheless

  bool operator==(const FaultCopies&) const = default;
};

struct FaultModel {
  std::string name, about;
  FaultUnit device, host, switches;
  SoftwareFault software;
  FaultDelays delays;
  FaultStorage storage;
  FaultSaves save;
  FaultCopies copies;
  std::int32_t spares = 0;            // devices that wait
  double spare_share = 0;             // more of them: a share of the run's devices
  double horizon = 30 * 86400.0;      // simulated time
  std::int32_t samples = 20;          // histories of faults, each from a seed of its own
  std::uint64_t seed = 1;             // of the first
  std::vector<std::int32_t> scales;   // numbers of devices; empty: the job's
  std::vector<std::string> policies;  // names of policy.h; empty: all

  FaultUnit unit(FaultKind kind) const {
    switch (kind) {
      case FaultKind::kDevice: return device;
      case FaultKind::kHost: return host;
      case FaultKind::kSwitch: return switches;
      case FaultKind::kSoftware: break;
    }
    return {.mtbf = software.mtbf, .devices = 1, .repair = 0, .lasting = 0};
  }
  bool operator==(const FaultModel&) const = default;
};

// The spare devices of a run: the share in whole hosts, where it is known what a host has.
inline std::int32_t spares_of(const FaultModel& spec, std::int32_t devices) {
  const double hosts = std::ceil(spec.spare_share * devices / spec.host.devices - 1e-9);
  return spec.spares + static_cast<std::int32_t>(hosts) * spec.host.devices;
}

// Faults a second of `devices` devices.
inline double fault_rate(const FaultModel& spec, FaultKind kind, double devices) {
  const FaultUnit unit = spec.unit(kind);
  return unit.mtbf > 0 ? devices / (unit.devices * unit.mtbf) : 0;
}

inline double fault_rate(const FaultModel& spec, double devices) {
  double rate = 0;
  for (std::size_t k = 0; k < kModelledFaults; ++k)
    rate += fault_rate(spec, static_cast<FaultKind>(k), devices);
  return rate;
}

}  // namespace hyperrun

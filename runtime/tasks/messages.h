// What controller and devices tell each other, as plain values. The control plane ships programs and
// reports as opaque bytes; what is in them is a matter of compiler, device and driver.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace hyperrun::control {

using Scalar = std::variant<std::int64_t, double>;

struct LoadProgram {
  std::int32_t program = 0;  // devices of different roles may load different bytes under one id
  std::string name;
  std::string content;

  bool operator==(const LoadProgram&) const = default;
};

// Index of a group of devices (device_groups.h).
using GroupId = std::int32_t;
inline constexpr GroupId kEveryDevice = 0;

// "Run that program once." Each device of the group gets it, in the order of issue.
struct Invocation {
  std::int64_t id = 0;  // increases in the run
  std::int32_t program = 0;
  std::int64_t step = 0;
  std::map<std::string, Scalar> scalars;
  std::string data;              // of the program's own kind
  GroupId group = kEveryDevice;  // who runs it; the devices are not told

  bool operator==(const Invocation&) const = default;
};

struct InvocationDone {
  std::int64_t id = 0;
  std::map<std::string, double> outputs;
  std::string report;
  std::string data{};  // outputs that are arrays, in a form of the device's own

  bool operator==(const InvocationDone&) const = default;
};

struct Shutdown {
  bool operator==(const Shutdown&) const = default;
};

// What the controller asks of a device.
using Command = std::variant<LoadProgram, Invocation, Shutdown>;

struct DeviceInfo {
  std::int32_t rank = -1;
  std::string host;
  std::string machine;  // equal where a pid names the same process
  std::int32_t pid = 0;
  std::string mpi_job;  // the MPI launcher's id of the job, or empty

  bool operator==(const DeviceInfo&) const = default;
};

}  // namespace hyperrun::control

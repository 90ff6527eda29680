// The messages between controller and devices, as plain values. The control plane carries programs and
// reports as opaque bytes. Only compiler, device and driver know their content.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/device_block.h"

namespace hyperrun::tasks {

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
  std::string data;              // data in a form of the program's own
  GroupId group = kEveryDevice;  // devices that run it; they are not told

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

// A command of the controller to a device.
using Command = std::variant<LoadProgram, Invocation, Shutdown>;

struct DeviceInfo {
  std::int32_t rank = -1;  // number of the device
  std::string host;
  std::string machine;  // equal if a pid names the same process
  std::int32_t pid = 0;
  std::string mpi_job;    // the MPI launcher's id of the job, or empty
  DeviceBlock process{};  // the devices that its process hosts; a count of 1 means this one, whatever `first`

  bool operator==(const DeviceInfo&) const = default;
};

}  // namespace hyperrun::tasks

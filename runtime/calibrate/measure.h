// Measures how long the points take on this machine. All devices run each point at once, again and again.
#pragma once

#include <functional>
#include <vector>

#include "collectives/world.h"
#include "runtime/calibrate/points.h"
#include "runtime/device/device_memory.h"

namespace hyperrun {

// The HBM that a device needs: the points' operands, and a page in which devices exchange numbers.
inline constexpr Bytes kCalibrationMemory{kPointMemory.value + 4096};

struct MeasureOptions {
  double seconds = 20;             // approximate time to take; every point is measured at least three times
  bool thread_per_stream = false;  // same as for the executor of a run
  // Called on every device before each round, with its number from 0 and the number of rounds.
  std::function<void(int round, int rounds)> on_round;
};

struct Measurement {
  double nanos = 0;  // time of one instruction, the median of `repeats` samples
  int repeats = 0;
};

// A measurement for each point, equal on all devices. All devices of the world call this, each with
// kCalibrationMemory of HBM and kPointPool of the pool. The content of both is lost.
//
// A sample is the time from one barrier to the next, in which every device repeats the instruction, minus
// that of an empty stretch, as the mean over the devices. It includes waiting and switching of processes
// where devices outnumber cores. Points take turns, so that a noisy moment does not hit one of them alone.
std::vector<Measurement> measure(const std::vector<Point>& points, const Mesh& mesh,
                                 const DeviceMemory& memory, World& world, const MeasureOptions& options);

}  // namespace hyperrun

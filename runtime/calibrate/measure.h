// How long the points take on this machine: all devices run each of them at once, again and again.
#pragma once

#include <functional>
#include <vector>

#include "collectives/world.h"
#include "runtime/calibrate/points.h"
#include "runtime/device/device_memory.h"

namespace hyperrun {

// Of HBM that a device needs: the points' operands, and a page in which devices tell each other numbers.
inline constexpr Bytes kCalibrationMemory{kPointMemory.value + 4096};

struct MeasureOptions {
  double seconds = 20;             // that it may take, about; every point is measured three times at least
  bool thread_per_stream = false;  // as the executor of a run has it
  // Called on every device before each round, with its number from 0, how many there will be.
  std::function<void(int round, int rounds)> on_round;
};

struct Measurement {
  double nanos = 0;  // of one instruction
  int repeats = 0;   // of which it is the median
};

// One of each point, equal on all devices. Called by all devices of the world, each with its memory: of HBM
// kCalibrationMemory, of the pool kPointPool. What lies there is lost.
//
// A sample is the time from one barrier to the next, in which every device repeats the instruction, less that
// of an empty stretch: also where devices outnumber cores nothing is left out, neither waiting nor switching.
// It is the mean over the devices. Points take turns, so that a noisy moment does not hit one of them alone.
std::vector<Measurement> measure(const std::vector<Point>& points, const Mesh& mesh,
                                 const DeviceMemory& memory, World& world, const MeasureOptions& options);

}  // namespace hyperrun

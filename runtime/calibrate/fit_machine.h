// Fits a machine to measurements: its figures are those with which the simulator comes nearest to them.
#pragma once

#include <string>
#include <vector>

#include "memory/host.h"
#include "runtime/calibrate/measure.h"
#include "runtime/calibrate/points.h"
#include "runtime/ir/machine.h"

namespace hyperrun {

struct Measured {
  Point point;
  Measurement measurement;
};

// The machine on which the points were measured.
struct Setting {
  Mesh mesh;
  Topology topology;  // has as many devices as the mesh
  int cores = 1;      // cores of a host
  Bytes hbm;          // HBM of a device
  // The executor runs the streams of a device in one thread: compute and communication take turns.
  bool in_order = false;
  Bytes pool{};  // a device's part of the pool
};

// The simulated time of the point's instruction, in ns, while all devices compute at once.
double predicted(const Point& point, const Setting& setting, const Machine& machine);

// The machine, by least squares of the logarithm of predicted over measured time.
//   - With several hosts there are two levels, the host and the network.
//   - The cube's rate is that of infinitely deep products, so the ceiling of products is 1.
//   - Memory and links have no efficiency: its effect on few bytes cannot be told from a launch or a latency.
//   - If there is one device only, figures of links are placeholders.
// Throws kMpi unless all hosts have equally many devices, numbered host by host.
Machine fit_machine(const std::vector<Measured>& measured, const Setting& setting);

}  // namespace hyperrun

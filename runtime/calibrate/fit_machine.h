// A machine from measurements: its figures are those with which the simulator comes nearest to what was
// measured.
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

// Where it was measured.
struct Setting {
  Mesh mesh;
  Topology topology;  // of as many devices as the mesh
  int cores = 1;      // of a host
  Bytes hbm;          // of a device
  // The executor runs the streams of a device in one thread: what computes and what communicates take turns.
  bool in_order = false;
  Bytes pool{};  // of a device
};

// ns of the point's instruction on the machine, as the simulator reckons it where all devices compute at
// once.
double predicted(const Point& point, const Setting& setting, const Machine& machine);

// Levels are the hosts, where there are several, and what joins them. Least squares of the logarithm of
// predicted over measured. The cube's rate is that of endlessly deep products, so their ceiling is 1. Memory
// and links have no efficiency of their own: that bytes cost more where they are few cannot be told from a
// launch or a latency. What a single device cannot show, the links between devices, are placeholders then.
// Throws kMpi unless hosts have as many devices each, numbered host by host.
Machine fit_machine(const std::vector<Measured>& measured, const Setting& setting);

}  // namespace hyperrun

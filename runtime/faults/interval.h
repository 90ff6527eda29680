// How often to save. Between faults that come at random, with a mean time M between them, a run trains for a
// time `work`, saves, and so on.
//
// Young:  J. W. Young, A First Order Approximation to the Optimum Checkpoint Interval, CACM 17(9), 1974.
// Daly:   J. T. Daly, A Higher Order Estimate of the Optimum Checkpoint Interval for Restart Dumps, Future
//         Generation Computer Systems 22(3), 2006: equations 20 (the time of a run) and 37 (the interval).
#pragma once

#include <cstdint>

#include "runtime/faults/costs.h"

namespace hyperrun {

// Seconds of training between two saves. `stall`: seconds of a save. `mtbf`: seconds between two faults.
double young_interval(double stall, double mtbf);
double daly_interval(double stall, double mtbf);

// The share of time that is spent on steps which last, where each fault is followed by `down` seconds, on
// average, before steps go on. Exact for faults that come at random.
double expected_goodput(double work, const SaveCost& save, double mtbf, double down);

// The mean of `down` if coming back takes `restart` seconds without a fault, and begins anew with each fault.
double expected_restart(double restart, double mtbf);

// The number of steps between two saves, 1 to `most`, with the greatest expected goodput. Saves do not
// overlap: one has ended before the next begins.
std::int64_t best_interval(double step, const SaveCost& save, double mtbf, std::int64_t most);

}  // namespace hyperrun

// What faults cost, as text, JSON, CSV and a picture. All figures are simulated.
#pragma once

#include <string>

#include "runtime/faults/study.h"

namespace hyperrun {

// "12 s", "35 min", "4.1 h", "3.2 days"; "never" if it is infinite.
std::string span_text(double seconds);

std::string to_text(const FaultStudy& study);
std::string to_json(const FaultStudy& study);
// A line for each number of devices and policy.
std::string to_csv(const FaultStudy& study);
// Goodput against devices, where there are several numbers of them, and against the interval between saves.
std::string to_svg(const FaultStudy& study);

}  // namespace hyperrun

// What reports of runs of several programs have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hyperrun {

// How long the devices of a program were in it.
struct ProgramUse {
  std::string name;
  std::int64_t devices = 0, runs = 0;
  double seconds = 0;  // all its devices together
};

struct ProgramsReport {
  std::string job;
  std::int64_t parameters = 0, devices = 0, steps = 0;
  std::string clock;  // "native", "paced" or "simulated"
  double dilation = 1;
  std::vector<ProgramUse> programs;
  double seconds = 0;      // from the begin of the first program to the end of the last
  double utilisation = 0;  // of that the share in which a device is in a program, mean of those that have one

  double per_second(std::int64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

std::string use_text(const ProgramsReport& report);  // for people, a line each

}  // namespace hyperrun

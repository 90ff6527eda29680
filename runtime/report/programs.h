// The common part of reports of runs of several programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hyperrun {

// The time that a program's devices were in it.
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
  double seconds = 0;      // from the beginning of the first program to the end of the last
  double utilisation = 0;  // share of that time in which a device is in a program, mean over devices with one

  double per_second(std::int64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

std::string describe_use(const ProgramsReport& report);  // for people, a line each

}  // namespace hyperrun

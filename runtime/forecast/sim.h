// hyperrun sim: the Programs of a job on the simulated machine. Without MPI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hyperrun {

struct SimArguments {
  std::string job;
  std::string trace;         // a .pftrace to write, or empty
  std::string chakra;        // a prefix of the files to write, or empty
  std::vector<int> devices;  // in the traces; none: all
  bool json = false, csv = false;
  int explain = 0;                // so many of the costliest instructions
  std::vector<std::string> slow;  // "7:1.3": device 7 computes 1.3 times as long
  double jitter = 0;              // of computations; see SimOptions
  std::uint64_t seed = 1;         // of the jitter
  bool generation = false;        // its passes, in place of a training step
  std::string lengths;            // "LEAST:MOST" tokens of completions, of a job with rewards; empty: all
  bool no_range = false;          // without what the time is where the profile's guesses are others
};
int simulate_job(const SimArguments& arguments);
int simulate_generation(const SimArguments& arguments);

}  // namespace hyperrun

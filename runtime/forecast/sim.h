// hyperrun sim: simulates the Programs of a job on the machine of its profile, without MPI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hyperrun {

struct SimArguments {
  std::string job;
  std::string trace;         // file for a Perfetto trace; empty: none
  std::string chakra;        // prefix of the Chakra files to write; empty: none
  std::vector<int> devices;  // devices in the traces; empty: all. With faults: numbers of devices
  bool json = false, csv = false;
  int explain = 0;                // number of costliest instructions to explain
  std::vector<std::string> slow;  // "7:1.3": device 7 computes 1.3 times as long
  double jitter = 0;              // jitter of computations; see SimOptions
  std::uint64_t seed = 1;         // seed of the jitter
  bool generation = false;        // simulates generation passes instead of a training step
  std::string lengths;    // "LEAST:MOST" tokens of completions, for a job with rewards; empty: 1 to all
  std::string faults;     // the name or file of what fails (faults_reader.h); empty: a step is simulated
  std::string svg;        // with faults: file for a picture; empty: none
  bool no_range = false;  // does not vary the guesses in the profile
};
// Both print the result and return the exit status.
int simulate_job(const SimArguments& arguments);
int simulate_generation(const SimArguments& arguments);

}  // namespace hyperrun

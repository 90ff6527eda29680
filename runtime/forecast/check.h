// hyperrun check: tells whether a job fits, how long a step takes and what it sends, without MPI.
#pragma once

#include <string>

namespace hyperrun {

struct CheckArguments {
  std::string job;
  std::string resume;    // replaces run.resume, as for a run
  bool layouts = false;  // prints which axes split each tensor
  bool traffic = false;  // prints each redistribution with its reason
  std::string memory;    // file for a picture of HBM over the step, .svg; empty: none
};
int check_job(const CheckArguments& arguments);

}  // namespace hyperrun

// hyperrun check: whether a job fits, how long its step is, what it sends. Without MPI.
#pragma once

#include <string>

namespace hyperrun {

struct CheckArguments {
  std::string job;
  std::string resume;    // as of a run
  bool layouts = false;  // which axes split each tensor
  bool traffic = false;  // each redistribution with its reason
  std::string memory;    // a picture to write of HBM over the step, .svg; or empty
};
int check_job(const CheckArguments& arguments);

}  // namespace hyperrun

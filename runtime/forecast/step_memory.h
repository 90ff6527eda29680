// The contents of HBM over a simulated step, for one device of each role, as a table and as a picture. The
// plan may exceed the budget.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/sim/live_curves.h"

namespace hyperrun {

class StepMemory {
 public:
  StepMemory(const Job& job, const Plan& plan);

  // A table by category: bytes at the peak of all, highest bytes, and bytes at the end of the step.
  std::string table(std::size_t role) const;
  std::string svg() const;

 private:
  struct RoleMemory {
    std::string name;               // empty if there is one role
    int device = 0;                 // the first device of the role
    Bytes planned{};                // peak of the fullest Program
    std::vector<LivePoint> points;  // live bytes over the training step
  };

  const Job& job_;
  std::string subtitle_;
  Nanos end_{};
  std::vector<RoleMemory> roles_;
};

}  // namespace hyperrun

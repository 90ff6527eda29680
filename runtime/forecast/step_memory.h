// What fills HBM over a simulated step, of a device of each role: as a table and as a picture. A plan that
// is above the budget is simulated like any other.
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

  // For the terminal: by category at the peak, at its own highest, and when the step has ended.
  std::string table(std::size_t role) const;
  std::string svg() const;

 private:
  struct Of {
    std::string name;
    int device = 0;                 // the first of the role
    Bytes planned{};                // of the arena, by the fullest of all programs
    std::vector<LivePoint> points;  // of the training step
  };

  const Job& job_;
  std::string subtitle_;
  Nanos end_{};
  std::vector<Of> roles_;
};

}  // namespace hyperrun

// Changes to a job that does not fit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

struct Change {
  std::string what;  // "add the preset sp"
  std::function<void(Job&)> apply;
  bool offloads = false;
};

// Changes of one kind, the mildest first. They exclude each other, and so do families with equal subjects.
struct Family {
  std::string subject;
  std::vector<Change> changes;
};

// Presets, mesh, paired passes, micro-batches and recomputation. `plan`: of the job.
std::vector<Family> changes_of_training(const Job& job, const Plan& plan);

// Mesh, fewer slots, shorter contexts.
std::vector<Family> changes_of_generation(const Job& job);

// Offloading by `policy` to each tier with a budget: of everything, and for generation also of parts.
std::vector<Family> offloading(const Job& job, const std::string& policy, bool generates);

}  // namespace hyperrun

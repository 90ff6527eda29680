// What may be changed about a job that does not fit.
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

// Of one kind, the mildest first: only one of them makes sense, and one family of a subject.
struct Family {
  std::string subject;
  std::vector<Change> changes;
};

// Presets, the mesh, pairs of passes, micro-batches, recomputation. `plan`: of the job.
std::vector<Family> changes_of_training(const Job& job, const Plan& plan);

// The mesh, fewer slots, a shorter context.
std::vector<Family> changes_of_generation(const Job& job);

// Offloading by `policy` to each tier that there is: of everything, and of a generation of parts, too.
std::vector<Family> offloading(const Job& job, const std::string& policy, bool generates);

}  // namespace hyperrun

// The compiler for a job of several programs.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// One of them, or an exchange of weights between two.
struct CompiledProgram {
  std::string name;
  std::string weights;     // of an exchange: the program that gets them; else empty
  std::vector<int> ranks;  // its devices among those of the job
  Job job;                 // as it would be alone (runtime/ir/programs.h)
  Plan plan;
  Bytes alone{};  // HBM that it would take without the others
};

// First the one that trains, then those that compute besides, in the job's order, and for each of these an
// exchange from the first, whose plan is for all ranks of the job. Programs that share devices lie beside
// each other there. Throws kBadLayout or kDoesNotFit.
std::vector<CompiledProgram> compile_programs(const Job& job);

// A plan on ranks of a job; one without a name is not told of in messages.
struct NamedPlan {
  std::string name;
  const Plan* plan;
  std::vector<int> ranks;
};
std::vector<NamedPlan> plans_of(const std::vector<CompiledProgram>& programs, int ranks);

// Bytes of a tier that each rank of the job takes, all plans together, which lie beside each other.
std::vector<Bytes> peaks_of_ranks(const std::vector<NamedPlan>& plans, int ranks, Tier tier);

// Throws kDoesNotFit where that is more than there is.
void check_together(const std::vector<NamedPlan>& plans, const SupernodeSpec& spec);

}  // namespace hyperrun

// The compiler for a job of several programs that learns from rewards.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// A compiled program of the job, or an exchange of weights between two programs.
struct CompiledProgram {
  std::string name;
  std::string weights;     // for an exchange, the program that receives the weights; else empty
  std::vector<int> ranks;  // the program's devices, as ranks of the job
  Job job;                 // the job of this program alone (runtime/ir/programs.h)
  Plan plan;
  Bytes alone{};  // HBM that the program would need without the others
};

// Compiles all programs, in this order: the one that trains; those that generate and score, in the job's
// order; for each of the latter an exchange of weights from the first. The plan of an exchange has all ranks
// of the job. Programs that share devices have disjoint state there. Throws kBadLayout or kDoesNotFit.
std::vector<CompiledProgram> compile_programs(const Job& job);

// A plan on ranks of a job. Messages leave out a plan without a name.
struct NamedPlan {
  std::string name;
  const Plan* plan;
  std::vector<int> ranks;
};
std::vector<NamedPlan> plans_of(const std::vector<CompiledProgram>& programs, int ranks);

// The bytes of a tier that all plans together need, by rank. Colocated plans already have disjoint state.
std::vector<Bytes> peaks_of_ranks(const std::vector<NamedPlan>& plans, int ranks, Tier tier);

// Throws kDoesNotFit if all plans together exceed the budget of a tier.
void check_together(const std::vector<NamedPlan>& plans, const SupernodeSpec& spec);

}  // namespace hyperrun

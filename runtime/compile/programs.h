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

// Bytes of a tier that each rank of the job takes, all programs together.
std::vector<Bytes> peaks_of_ranks(const std::vector<CompiledProgram>& programs, int ranks, Tier tier);

}  // namespace hyperrun

#include "runtime/advise/fit_effort.h"

#include <algorithm>

namespace hyperrun {
namespace {

// Effort of the graph, for each of its nodes. It is built once, on one thread, whatever the number of
// micro-batches.
constexpr Effort kGraph = 4;

// Stages are compiled in parallel, on as many cores as any host has.
constexpr std::int64_t kThreads = 2;

// Planning transfers tries several plans of two policies. In a long Program only a few micro-batches are
// planned (kMinCompressed of runtime/compile/role_planner.cc) and repeated.
constexpr Effort kFirst = 8192, kPlanned = 100, kSpread = 8;
constexpr Effort kReacting = 3;

Effort of_program(Effort length, const std::string& policy) {
  if (policy == "none") return length;
  if (policy == "reactive") return length * kReacting;
  return std::min(length, kFirst) * kPlanned + std::max<Effort>(0, length - kFirst) * kSpread;
}

}  // namespace

Effort effort_like(const Job& job, const Plan& plan, const Job& like) {
  const std::int64_t cuts = job.training.micro_batches, of_like = like.training.micro_batches;
  Effort all = 0, graph = 0;
  for (const Role& role : plan.roles) {
    Effort length = 0;
    for (const Program& program : role.programs)
      length += std::ssize(program.instrs) * (program.name == "train" ? cuts : of_like) / of_like;
    graph += length / cuts;
    all += of_program(length, job.memory.policy);
  }
  return kGraph * graph + all / std::min(kThreads, std::ssize(plan.roles));
}

}  // namespace hyperrun

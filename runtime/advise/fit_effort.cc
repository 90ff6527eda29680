#include "runtime/advise/fit_effort.h"

#include <algorithm>

namespace hyperrun {
namespace {

// The graph, before it is unrolled into micro-batches: on one thread, whatever their number.
constexpr Effort kGraph = 4;

// Stages are compiled at the same time, on as many cores as any host has.
constexpr std::int64_t kThreads = 2;

// Where tensors move, what moves when is planned in several ways, and of two policies. Of a long Program a
// few micro-batches are planned (kLeastFolded of runtime/compile/role_planner.cc) and then spread over all.
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

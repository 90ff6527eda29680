// Plans the evictions of the Programs of one role.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compile/compile.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/offload/offload_plan.h"

namespace hyperrun {

struct PlanningEffort {
  int plans = 0;    // evaluated
  int fitting = 0;  // of these, within the budget
};

struct RolePlan {
  std::vector<OffloadPlan> moves;  // by Program
  Bytes hbm{};                     // peak in HBM
  Bytes beyond{};                  // peak in the lower tier
  std::int64_t length = 0;         // ns, of the deciding Program without waiting for other roles
};

// All Programs of a role share their state, so one Program decides which state is offloaded: the training
// step, or else the one with the highest peak. Optimizer state that it does not use (in a submodel) is
// offloaded as soon as anything moves.
class RolePlanner {
 public:
  // `programs` have neither offsets nor events; they and `job` outlive the planner. `policy` replaces the
  // job's. `device`: a device of the role, for durations. If `refusals` limit the length of steps, fastest()
  // and budget_sweep() throw kDoesNotFit for a longer step that compression cannot plan.
  RolePlanner(const std::vector<Program>& programs, const Job& job, const std::string& policy, int device,
              const Refusals& refusals = {});
  ~RolePlanner();

  // The live peak exceeds the job's budget under every plan.
  bool is_hopeless();

  // The fastest plans found within the job's budget, by Program. Programs that fit unmoved get empty plans. A
  // Program that cannot fit gets a plan with a low peak.
  std::vector<OffloadPlan> fastest();

  // Plans that do not depend on the budget: no evictions, all possible evictions, and targets between them.
  // So feasibility is monotone: a budget that one of them fits in is enough, and so is every larger one.
  const std::vector<RolePlan>& budget_sweep();
  // True if one of the first two plans of the sweep fits in `hbm`. Cheaper than budget_sweep(): it need not
  // find the lowest peak.
  bool fits_in(Bytes hbm);

  const PlanningEffort& effort() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun

// Plans of what lies beyond HBM, and when, for the Programs of one role.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compile/compile.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

// How much was tried until it was decided.
struct PlanningEffort {
  int plans = 0, fitting = 0;  // of these with places within the budget
};

struct RolePlan {
  std::vector<Absences> moves;  // one of each Program
  Bytes hbm{}, beyond{};        // that they take, with places
  std::int64_t length = 0;      // ns, of the Program that decides where state is, by itself
};

// Of Programs that have neither places nor events. Where the homes of state are is decided by the training
// step, or, where there is none, by the Program that needs most. State of the optimizer that this one does
// not use (that of a sub-model) has its home beyond HBM where anything moves.
class RolePlanner {
 public:
  // `policy`: that decides, in the place of the job's. `device`: of the role; its times count. Programs and
  // job outlive it. Where long steps are refused, fastest() and ladder() throw kDoesNotFit of those of which
  // a few micro-batches do not say how all are planned.
  RolePlanner(const std::vector<Program>& programs, const Job& job, const std::string& policy, int device,
              const Refusals& refusals = {});
  ~RolePlanner();

  // More than the job's budget is live at once, whatever moves.
  bool is_hopeless();

  // Within the job's budget and as short as is found; nothing moves where Programs fit as they are. What does
  // not come to fit is made small.
  std::vector<Absences> fastest();

  // Plans that do not depend on any budget: nothing that moves, all that may, and those for less and less
  // memory. A budget that one of them keeps to is enough, and so is every larger one.
  const std::vector<RolePlan>& ladder();
  // Whether one of the first two takes no more than that. It is sooner known than what they take: a place for
  // everything is enough then, and the lowest need not be found.
  bool keeps_to(Bytes hbm);

  const PlanningEffort& effort() const;

 private:
  class Deciding;
  std::unique_ptr<Deciding> deciding_;
};

}  // namespace hyperrun

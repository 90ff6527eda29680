#include "runtime/compile/choose_memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/compile/early_updates.h"
#include "runtime/compile/materialize_offload.h"
#include "runtime/compile/pipeline_makespan.h"
#include "runtime/compile/role_planner.h"
#include "runtime/ir/release.h"

namespace hyperrun {
namespace {

using PlansOfRoles = std::vector<std::vector<RolePlan>>;

// One plan for each role.
using Choice = std::vector<const RolePlan*>;

Bytes beyond_of(const Choice& choice) {
  Bytes sum{};
  for (const RolePlan* plan : choice) sum += plan->beyond;
  return sum;
}

// For each role the plan within `hbm` that takes the least of the lower tier; nullopt if a role has none.
std::optional<Choice> least_beyond(const PlansOfRoles& plans, Bytes hbm) {
  Choice choice;
  for (const std::vector<RolePlan>& of_role : plans) {
    const RolePlan* best = nullptr;
    for (const RolePlan& plan : of_role)
      if (plan.hbm <= hbm && (best == nullptr || plan.beyond < best->beyond)) best = &plan;
    if (best == nullptr) return std::nullopt;
    choice.push_back(best);
  }
  return choice;
}

// The least HBM that is enough if all roles together may take `beyond` of the lower tier.
Bytes least_hbm(const PlansOfRoles& plans, Bytes beyond) {
  std::vector<Bytes> peaks;
  for (const std::vector<RolePlan>& of_role : plans)
    for (const RolePlan& plan : of_role) peaks.push_back(plan.hbm);
  std::ranges::sort(peaks);
  const auto is_enough = [&](Bytes hbm) {
    const std::optional<Choice> choice = least_beyond(plans, hbm);
    return choice && beyond_of(*choice) <= beyond;
  };
  // More HBM leaves more to choose from.
  return *std::ranges::partition_point(peaks, [&](Bytes hbm) { return !is_enough(hbm); });
}

// For each role the fastest plan within `hbm`. While they exceed `beyond` together, the role that loses the
// least time takes a plan that needs less of the lower tier.
Choice fastest_choice(const PlansOfRoles& plans, Bytes hbm, Bytes beyond) {
  Choice choice = *least_beyond(plans, hbm);
  const auto sooner = [](const RolePlan& a, const RolePlan& b) {
    return std::pair(a.length, a.beyond) < std::pair(b.length, b.beyond);
  };
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (const RolePlan& plan : plans[r])
      if (plan.hbm <= hbm && sooner(plan, *choice[r])) choice[r] = &plan;
  while (beyond_of(choice) > beyond) {
    std::optional<std::pair<std::int64_t, std::size_t>> least;  // ns lost, role
    const RolePlan* instead = nullptr;
    for (std::size_t r = 0; r < plans.size(); ++r)
      for (const RolePlan& plan : plans[r]) {
        if (plan.hbm > hbm || plan.beyond >= choice[r]->beyond) continue;
        const std::pair loss(plan.length - choice[r]->length, r);
        if (!least || loss < *least) least = loss, instead = &plan;
      }
    if (!least) break;
    choice[least->second] = instead;
  }
  return choice;
}

Error not_as_decided() {
  return Error(Code::kBadLayout, "its layouts are not those of the model that it stands for")
      .legal("sizes that the job's axes divide as they divide the larger model's")
      .fix("divide sizes by less");
}

// Throws if the moves were decided for Programs with other buffers.
const RoleMoves& checked_moves(const RoleMoves& like, const std::vector<std::size_t>& buffers) {
  if (like.buffers != buffers) throw not_as_decided();
  return like;
}

Moves no_moves(const Plan& plan) {
  Moves moves;
  for (const Role& role : plan.roles) {
    RoleMoves& m = moves.emplace_back();
    m.programs.resize(role.programs.size());
    for (const Program& program : role.programs) m.buffers.push_back(program.buffers.size());
  }
  return moves;
}

class MemoryPlanner {
 public:
  // `plan` outlives it.
  MemoryPlanner(const Plan& plan, const Job& job, const Refusals& refusals)
      : plan_(plan), job_(job), refusals_(refusals), tier_(tier_of(job.memory)) {}

  struct Outcome {
    Plan plan;
    MemoryPlan memory;
  };

  Outcome run() const {
    Outcome best = plan_with(job_.memory.policy);
    if (job_.memory.policy != "hyperoffload" || !moves_anything(best) ||
        best.plan.peak() > job_.supernode.hbm)
      return best;
    // Plans of single roles do not know how long stages wait for each other, so the reactive policy may win.
    Outcome reacting = plan_with("reactive");
    return replaces(reacting, best) ? std::move(reacting) : std::move(best);
  }

  // Some role cannot fit under any plan.
  bool is_hopeless() const {
    std::vector<std::uint8_t> is(plan_.roles.size());
    parallel_for(is.size(),
                 [&](std::size_t r) { is[r] = planner_of(r, job_.memory.policy)->is_hopeless() ? 1 : 0; });
    return std::ranges::count(is, 1) > 0;
  }

  // Places the plan itself instead of a copy.
  static Outcome placed(Plan plan, Moves moves, const Job& job) {
    Outcome out{std::move(plan), {std::move(moves), {}}};
    out.memory.places.resize(out.plan.roles.size());
    parallel_for(out.plan.roles.size(), [&](std::size_t r) {
      out.memory.places[r] =
          materialize_offload(out.plan.roles[r].programs, job, out.memory.moves[r].programs);
    });
    return out;
  }

  bool fits_unmoved(const Outcome& outcome) const { return fits(outcome.plan) && !moves_anything(outcome); }

  // Compares plans of any order of the same instructions. One that fits is better; of two that fit the faster
  // one; of two that do not the one that needs less memory.
  bool is_better(const Outcome& one, const Outcome& other) const {
    if (fits(one.plan) != fits(other.plan)) return fits(one.plan);
    if (fits(one.plan)) return length(one.plan) < length(other.plan);
    const auto needs = [&](const Outcome& o) {
      return std::pair(o.plan.peak(), o.plan.of_all_devices(tier_));
    };
    return needs(one) < needs(other);
  }

 private:
  // `one` is better than `other`, which fits in HBM.
  bool replaces(const Outcome& one, const Outcome& other) const {
    if (one.plan.peak() > job_.supernode.hbm) return false;
    if (!fits(one.plan) || !fits(other.plan)) return !fits(other.plan) && takes_less(one, other);
    return length(one.plan) < length(other.plan);
  }

  bool takes_less(const Outcome& one, const Outcome& other) const {
    return one.plan.of_all_devices(tier_) < other.plan.of_all_devices(tier_);
  }

  // Copies roles in the threads that place them: copying takes as long as placing.
  Outcome placed(Moves moves) const {
    Outcome out{{plan_.mesh, plan_.role_axes, std::vector<Role>(plan_.roles.size())},
                {std::move(moves), std::vector<StatePlaces>(plan_.roles.size())}};
    parallel_for(out.plan.roles.size(), [&](std::size_t r) {
      out.plan.roles[r] = plan_.roles[r];
      out.memory.places[r] =
          materialize_offload(out.plan.roles[r].programs, job_, out.memory.moves[r].programs);
    });
    return out;
  }

  Outcome placed(const Choice& choice) const {
    Moves moves = no_moves(plan_);
    for (std::size_t r = 0; r < moves.size(); ++r) moves[r].programs = choice[r]->moves;
    return placed(std::move(moves));
  }

  std::unique_ptr<RolePlanner> planner_of(std::size_t role, const std::string& policy) const {
    return std::make_unique<RolePlanner>(plan_.roles[role].programs, job_, policy,
                                         plan_.mesh.group(0, plan_.role_axes)[role], refusals_);
  }

  // The fastest plan is taken only if a plan that does not depend on the budget needs no more HBM. Otherwise
  // a larger budget, with other fastest plans, might be refused.
  Outcome plan_with(const std::string& policy) const {
    Moves moves = no_moves(plan_);
    if (policy == "none") return placed(std::move(moves));
    std::vector<std::unique_ptr<RolePlanner>> planners(moves.size());
    parallel_for(moves.size(), [&](std::size_t r) {
      planners[r] = planner_of(r, policy);
      moves[r].programs = planners[r]->fastest();
    });
    Outcome fastest = placed(std::move(moves));
    const Bytes hbm = job_.supernode.hbm;
    if (fits(fastest.plan) && !moves_anything(fastest)) return fastest;
    PlansOfRoles plans(planners.size());
    if (fits(fastest.plan)) {
      std::vector<std::uint8_t> keeps(planners.size());
      const Bytes peak = fastest.plan.peak();
      parallel_for(planners.size(), [&](std::size_t r) { keeps[r] = planners[r]->fits_in(peak) ? 1 : 0; });
      if (std::ranges::count(keeps, 0) == 0) return fastest;
    }
    parallel_for(planners.size(), [&](std::size_t r) { plans[r] = planners[r]->budget_sweep(); });
    const bool may_be = fastest.plan.peak() <= hbm && least_beyond(plans, fastest.plan.peak());
    if (may_be && fits(fastest.plan)) return fastest;
    if (!least_beyond(plans, hbm)) return placed(fastest_choice(plans, least_hbm(plans, beyond()), beyond()));
    Outcome sparing = placed(fastest_choice(plans, hbm, beyond()));
    return may_be && takes_less(fastest, sparing) && !fits(sparing.plan) ? std::move(fastest)
                                                                         : std::move(sparing);
  }

  // The lower tier's budget for one device of each role together.
  Bytes beyond() const {
    const std::int64_t devices = plan_.mesh.devices() / std::ssize(plan_.roles);
    return Bytes(budget_beyond().value / devices);
  }
  Bytes budget_beyond() const { return tier_ == Tier::kFlash ? job_.supernode.flash : job_.supernode.pool; }

  bool fits(const Plan& plan) const {
    return plan.peak() <= job_.supernode.hbm && plan.of_all_devices(tier_) <= budget_beyond();
  }

  static bool moves_anything(const Outcome& outcome) {
    return std::ranges::any_of(outcome.memory.moves, [](const RoleMoves& role) {
      return std::ranges::any_of(role.programs, [](const OffloadPlan& a) { return a != OffloadPlan{}; });
    });
  }

  // ns of a training step, or else of one invocation of each Program.
  std::int64_t length(const Plan& plan) const {
    const Machine machine = machine_of(job_.supernode);
    const std::vector<Program>& programs = plan.roles.front().programs;
    const auto train = std::ranges::find(programs, "train", &Program::name);
    if (train != programs.end())
      return pipeline_makespan(plan, static_cast<std::size_t>(train - programs.begin()), machine).value;
    std::int64_t sum = 0;
    for (std::size_t p = 0; p < programs.size(); ++p) sum += pipeline_makespan(plan, p, machine).value;
    return sum;
  }

  const Plan& plan_;
  const Job& job_;
  Refusals refusals_;
  Tier tier_;
};

// The order of its training step's instructions, by role; empty: unchanged.
using Orders = std::vector<std::vector<std::int32_t>>;

Program* step_of(Role& role) {
  const auto step = std::ranges::find(role.programs, "train", &Program::name);
  return step == role.programs.end() ? nullptr : &*step;
}

Orders orders_of(const Moves& moves) {
  Orders orders;
  for (const RoleMoves& m : moves) orders.push_back(m.order);
  return orders;
}

bool may_come_early(Plan& plan) {
  return std::ranges::any_of(plan.roles, [](Role& role) {
    const Program* step = step_of(role);
    return step != nullptr && may_come_early(*step);
  });
}

Orders early_orders(Plan& plan, const Job& job) {
  Orders orders(plan.roles.size());
  const Machine machine = machine_of(job.supernode);
  const std::vector<int> devices = plan.mesh.group(0, plan.role_axes);
  parallel_for(orders.size(), [&](std::size_t r) {
    if (const Program* step = step_of(plan.roles[r])) orders[r] = early_updates(*step, machine, devices[r]);
  });
  return orders;
}

void reorder(Plan& plan, const Orders& orders) {
  for (std::size_t r = 0; r < orders.size(); ++r)
    if (!orders[r].empty() && !do_in_order(*step_of(plan.roles[r]), orders[r])) throw not_as_decided();
}

Error fits_no_plan() {
  return Error(Code::kDoesNotFit, "more is live at once than HBM holds, whatever moves")
      .at("supernode.hbm")
      .fix("raise it, or divide the model and its samples over more devices");
}

// Plans the usual order and, unless everything fits unmoved, early updates. If planning one order is refused
// because it takes long, so is the job: that order might be the better one.
MemoryPlanner::Outcome plan_in_better_order(Plan& plan, const Job& job, const Refusals& refusals) {
  const MemoryPlanner planner(plan, job, refusals);
  const auto planned = [&]() -> std::optional<MemoryPlanner::Outcome> {
    if (refusals.hopeless && planner.is_hopeless()) return std::nullopt;
    return planner.run();
  };
  std::optional<MemoryPlanner::Outcome> best = planned();
  if (may_come_early(plan) && !(best && planner.fits_unmoved(*best))) {
    const Orders early = early_orders(plan, job);
    if (!std::ranges::all_of(early, &std::vector<std::int32_t>::empty)) {
      reorder(plan, early);
      std::optional<MemoryPlanner::Outcome> other = planned();
      for (std::size_t r = 0; other && r < early.size(); ++r) other->memory.moves[r].order = early[r];
      if (!best || (other && planner.is_better(*other, *best))) best = std::move(other);
    }
  }
  if (!best) throw fits_no_plan();
  return std::move(*best);
}

MemoryPlanner::Outcome plan_like(const Moves& like, Plan& plan, const Job& job) {
  reorder(plan, orders_of(like));
  Moves moves = no_moves(plan);
  for (std::size_t r = 0; r < moves.size(); ++r) moves[r] = checked_moves(like[r], moves[r].buffers);
  return MemoryPlanner::placed(std::move(plan), std::move(moves), job);
}

}  // namespace

MemoryPlan choose_memory_plan(Plan& plan, const Job& job, const Moves* like, const Refusals& refusals) {
  MemoryPlanner::Outcome outcome = [&] {
    if (like != nullptr) return plan_like(*like, plan, job);
    if (job.memory.policy != "none" || may_come_early(plan)) return plan_in_better_order(plan, job, refusals);
    Moves moves = no_moves(plan);
    return MemoryPlanner::placed(std::move(plan), std::move(moves), job);
  }();
  release(plan);
  plan = std::move(outcome.plan);
  return std::move(outcome.memory);
}

}  // namespace hyperrun

#include "runtime/compile/settle.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/compile/early_updates.h"
#include "runtime/compile/move.h"
#include "runtime/compile/role_planner.h"
#include "runtime/compile/step_walk.h"
#include "runtime/ir/release.h"

namespace hyperrun {
namespace {

using PlansOfRoles = std::vector<std::vector<RolePlan>>;

// One of each role's plans.
using Choice = std::vector<const RolePlan*>;

Bytes beyond_of(const Choice& choice) {
  Bytes sum{};
  for (const RolePlan* plan : choice) sum += plan->beyond;
  return sum;
}

// Of all that keep to `hbm` those that take the least beyond it; nothing, where a role has none.
std::optional<Choice> sparest(const PlansOfRoles& plans, Bytes hbm) {
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

// HBM that is enough, if all roles together may take so much beyond it.
Bytes least_hbm(const PlansOfRoles& plans, Bytes beyond) {
  std::vector<Bytes> peaks;
  for (const std::vector<RolePlan>& of_role : plans)
    for (const RolePlan& plan : of_role) peaks.push_back(plan.hbm);
  std::ranges::sort(peaks);
  const auto is_enough = [&](Bytes hbm) {
    const std::optional<Choice> choice = sparest(plans, hbm);
    return choice && beyond_of(*choice) <= beyond;
  };
  // More HBM leaves more to choose from.
  return *std::ranges::partition_point(peaks, [&](Bytes hbm) { return !is_enough(hbm); });
}

// The shortest of each role that keep to `hbm`; while they take more beyond it than they may, that one makes
// way for a sparer one which loses least by it.
Choice shortest(const PlansOfRoles& plans, Bytes hbm, Bytes beyond) {
  Choice choice = *sparest(plans, hbm);
  const auto sooner = [](const RolePlan& a, const RolePlan& b) {
    return std::pair(a.length, a.beyond) < std::pair(b.length, b.beyond);
  };
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (const RolePlan& plan : plans[r])
      if (plan.hbm <= hbm && sooner(plan, *choice[r])) choice[r] = &plan;
  while (beyond_of(choice) > beyond) {
    std::optional<std::pair<std::int64_t, std::size_t>> least;  // longer by, of which role
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

// What was decided for Programs with as many buffers.
const RoleMoves& as_decided(const RoleMoves& like, const std::vector<std::size_t>& buffers) {
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

class Settling {
 public:
  // `plan` outlives it.
  Settling(const Plan& plan, const Job& job, const Refusals& refusals)
      : plan_(plan), job_(job), refusals_(refusals), tier_(tier_of(job.memory)) {}

  struct Outcome {
    Plan plan;
    SettledPlan settled;
  };

  Outcome run() const {
    Outcome best = by(job_.memory.policy);
    if (job_.memory.policy != "hyperoffload" || !moves_anything(best) ||
        best.plan.peak() > job_.supernode.hbm)
      return best;
    // The stages' own rehearsals know nothing of how long they wait for each other.
    Outcome reacting = by("reactive");
    return better(reacting, best) ? std::move(reacting) : std::move(best);
  }

  // Some role is, whatever moves.
  bool is_hopeless() const {
    std::vector<std::uint8_t> is(plan_.roles.size());
    parallel_for(is.size(),
                 [&](std::size_t r) { is[r] = planner_of(r, job_.memory.policy)->is_hopeless() ? 1 : 0; });
    return std::ranges::count(is, 1) > 0;
  }

  // The plan itself: no other is made of it.
  static Outcome placed(Plan plan, Moves moves, const Job& job) {
    Outcome out{std::move(plan), {std::move(moves), {}}};
    out.settled.places.resize(out.plan.roles.size());
    parallel_for(out.plan.roles.size(), [&](std::size_t r) {
      out.settled.places[r] = move_and_place(out.plan.roles[r].programs, job, out.settled.moves[r].programs);
    });
    return out;
  }

  bool has_room_unmoved(const Outcome& outcome) const {
    return fits(outcome.plan) && !moves_anything(outcome);
  }

  // The one that fits; of two that do the shorter, of others the one that needs less. Of any orders of the
  // same instructions.
  bool is_better(const Outcome& one, const Outcome& other) const {
    if (fits(one.plan) != fits(other.plan)) return fits(one.plan);
    if (fits(one.plan)) return length(one.plan) < length(other.plan);
    const auto needs = [&](const Outcome& o) {
      return std::pair(o.plan.peak(), o.plan.of_all_devices(tier_));
    };
    return needs(one) < needs(other);
  }

 private:
  // The other one has HBM enough.
  bool better(const Outcome& one, const Outcome& other) const {
    if (one.plan.peak() > job_.supernode.hbm) return false;
    if (!fits(one.plan) || !fits(other.plan)) return !fits(other.plan) && takes_less(one, other);
    return length(one.plan) < length(other.plan);
  }

  bool takes_less(const Outcome& one, const Outcome& other) const {
    return one.plan.of_all_devices(tier_) < other.plan.of_all_devices(tier_);
  }

  // The roles are copied as they are placed, at the same time: that takes as long.
  Outcome placed(Moves moves) const {
    Outcome out{{plan_.mesh, plan_.role_axes, std::vector<Role>(plan_.roles.size())},
                {std::move(moves), std::vector<StatePlaces>(plan_.roles.size())}};
    parallel_for(out.plan.roles.size(), [&](std::size_t r) {
      out.plan.roles[r] = plan_.roles[r];
      out.settled.places[r] = move_and_place(out.plan.roles[r].programs, job_, out.settled.moves[r].programs);
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

  // A plan is taken only where one that depends on no budget needs no more HBM than it: else a larger budget,
  // for which others are made, might be refused.
  Outcome by(const std::string& policy) const {
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
      parallel_for(planners.size(), [&](std::size_t r) { keeps[r] = planners[r]->keeps_to(peak) ? 1 : 0; });
      if (std::ranges::count(keeps, 0) == 0) return fastest;
    }
    parallel_for(planners.size(), [&](std::size_t r) { plans[r] = planners[r]->ladder(); });
    const bool may_be = fastest.plan.peak() <= hbm && sparest(plans, fastest.plan.peak());
    if (may_be && fits(fastest.plan)) return fastest;
    if (!sparest(plans, hbm)) return placed(shortest(plans, least_hbm(plans, beyond()), beyond()));
    Outcome sparing = placed(shortest(plans, hbm, beyond()));
    return may_be && takes_less(fastest, sparing) && !fits(sparing.plan) ? std::move(fastest)
                                                                         : std::move(sparing);
  }

  // Of each role, on one of its devices.
  Bytes beyond() const {
    const std::int64_t devices = plan_.mesh.devices() / std::ssize(plan_.roles);
    return Bytes(budget_beyond().value / devices);
  }
  Bytes budget_beyond() const { return tier_ == Tier::kFlash ? job_.supernode.flash : job_.supernode.pool; }

  bool fits(const Plan& plan) const {
    return plan.peak() <= job_.supernode.hbm && plan.of_all_devices(tier_) <= budget_beyond();
  }

  static bool moves_anything(const Outcome& outcome) {
    return std::ranges::any_of(outcome.settled.moves, [](const RoleMoves& role) {
      return std::ranges::any_of(role.programs, [](const Absences& a) { return a != Absences{}; });
    });
  }

  // Of a training step, or of a pass of each kind.
  std::int64_t length(const Plan& plan) const {
    const Machine machine = machine_of(job_.supernode);
    const std::vector<Program>& programs = plan.roles.front().programs;
    const auto train = std::ranges::find(programs, "train", &Program::name);
    if (train != programs.end())
      return length_together(plan, static_cast<std::size_t>(train - programs.begin()), machine).value;
    std::int64_t sum = 0;
    for (std::size_t p = 0; p < programs.size(); ++p) sum += length_together(plan, p, machine).value;
    return sum;
  }

  const Plan& plan_;
  const Job& job_;
  Refusals refusals_;
  Tier tier_;
};

// Of each role's training step; empty: as it is.
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

void do_in_orders(Plan& plan, const Orders& orders) {
  for (std::size_t r = 0; r < orders.size(); ++r)
    if (!orders[r].empty() && !do_in_order(*step_of(plan.roles[r]), orders[r])) throw not_as_decided();
}

Error fits_no_plan() {
  return Error(Code::kDoesNotFit, "more is live at once than HBM holds, whatever moves")
      .at("supernode.hbm")
      .fix("raise it, or divide the model and its samples over more devices");
}

// Where all has room as it is, nothing is gained by another order. Where planning one of the two is refused
// as it takes long, so is the whole: by itself it might be the better one.
Settling::Outcome settled_in_the_better_order(Plan& plan, const Job& job, const Refusals& refusals) {
  const Settling settling(plan, job, refusals);
  const auto settled = [&]() -> std::optional<Settling::Outcome> {
    if (refusals.hopeless && settling.is_hopeless()) return std::nullopt;
    return settling.run();
  };
  std::optional<Settling::Outcome> best = settled();
  if (may_come_early(plan) && !(best && settling.has_room_unmoved(*best))) {
    const Orders early = early_orders(plan, job);
    if (!std::ranges::all_of(early, &std::vector<std::int32_t>::empty)) {
      do_in_orders(plan, early);
      std::optional<Settling::Outcome> other = settled();
      for (std::size_t r = 0; other && r < early.size(); ++r) other->settled.moves[r].order = early[r];
      if (!best || (other && settling.is_better(*other, *best))) best = std::move(other);
    }
  }
  if (!best) throw fits_no_plan();
  return std::move(*best);
}

Settling::Outcome settled_like(const Moves& like, Plan& plan, const Job& job) {
  do_in_orders(plan, orders_of(like));
  Moves moves = no_moves(plan);
  for (std::size_t r = 0; r < moves.size(); ++r) moves[r] = as_decided(like[r], moves[r].buffers);
  return Settling::placed(std::move(plan), std::move(moves), job);
}

}  // namespace

SettledPlan settle(Plan& plan, const Job& job, const Moves* like, const Refusals& refusals) {
  Settling::Outcome outcome = [&] {
    if (like != nullptr) return settled_like(*like, plan, job);
    if (job.memory.policy != "none" || may_come_early(plan))
      return settled_in_the_better_order(plan, job, refusals);
    Moves moves = no_moves(plan);
    return Settling::placed(std::move(plan), std::move(moves), job);
  }();
  release(plan);
  plan = std::move(outcome.plan);
  return std::move(outcome.settled);
}

}  // namespace hyperrun

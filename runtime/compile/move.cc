#include "runtime/compile/move.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/events.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/estimate.h"
#include "runtime/offload/apply.h"
#include "runtime/offload/policy.h"
#include "runtime/offload/rehearsal.h"

namespace hyperrun {
namespace {

// How often a Program is planned again for less memory, because what lives at once found no places in it.
constexpr int kAttempts = 16;
constexpr std::int64_t kLeastStep = 128;  // is this share of the budget
// And for the times that come true.
constexpr int kTimes = 4;

// Less of a step's time than this share is not looked for by further plans.
constexpr std::int64_t kLeastGain = 1000;

using Names = std::set<std::string>;
using Policy = Absences (*)(const OffloadProblem&);

void place_and_order(Program& program, const StatePlaces& places, Bytes enough = Bytes(0)) {
  place_buffers(program, places, enough);
  add_events(program);
}

std::vector<Category> movable_categories(const MemorySpec& memory) {
  std::vector<std::string> names = memory.tensors;
  if (names.empty() && memory.policy == "weights") names = {"weights"};
  if (names.empty()) names = {"weights", "gradients", "optimizer", "activations", "cache"};
  std::vector<Category> list;
  for (std::size_t c = 0; c < kCategories; ++c)
    if (std::ranges::find(names, name(static_cast<Category>(c))) != names.end())
      list.push_back(static_cast<Category>(c));
  return list;
}

Tier tier_of(const MemorySpec& memory) { return memory.tier == "flash" ? Tier::kFlash : Tier::kPool; }

Names names_of(const Program& program, const std::vector<std::int32_t>& homes) {
  Names names;
  for (const std::int32_t b : homes) names.insert(program.buffers[static_cast<std::size_t>(b)].name);
  return names;
}

// State lies where its home is, by all Programs.
StatePlaces state_places(const std::vector<Program>& programs, const Names& homes, Tier tier) {
  std::vector<Program> states;
  for (const Program& program : programs) {
    Program& state = states.emplace_back();
    for (const Buffer& b : program.buffers) {
      if (!b.state) continue;
      state.buffers.push_back(b);
      if (homes.contains(b.name)) state.buffers.back().tier = tier;
    }
  }
  StatePlaces places;
  place_state(states, places);
  return places;
}

class Deciding {
 public:
  Deciding(const std::vector<Program>& programs, const Job& job, int device)
      : programs_(programs),
        memory_(job.memory),
        machine_(machine_of(job.supernode)),
        device_(device),
        budget_(job.supernode.hbm),
        tier_(tier_of(memory_)),
        movable_(movable_categories(memory_)) {}

  std::vector<Absences> run() {
    std::vector<Absences> moves(programs_.size());
    if (memory_.policy == "none") return moves;
    const std::ptrdiff_t first = fullest();
    const auto decide = [&](std::ptrdiff_t p, bool new_homes) {
      const Program& program = programs_[static_cast<std::size_t>(p)];
      if (!fits(program)) moves[static_cast<std::size_t>(p)] = move(program, new_homes);
      return names_of(program, moves[static_cast<std::size_t>(p)].homes);
    };
    homes_ = decide(first, true);
    for (std::ptrdiff_t p = 0; p < std::ssize(programs_); ++p)
      if (p != first) decide(p, false);
    return moves;
  }

  const PlanningEffort& effort() const { return effort_; }

 private:
  // That decides where state has its home: the training step, else the one that needs most.
  std::ptrdiff_t fullest() const {
    std::ptrdiff_t most = 0;
    Bytes peak{};
    for (std::ptrdiff_t p = 0; p < std::ssize(programs_); ++p) {
      if (programs_[static_cast<std::size_t>(p)].name == "train") return p;
      Program placed = programs_[static_cast<std::size_t>(p)];
      place_buffers(placed, state_places(programs_, {}, tier_));
      if (placed.peak[0] > peak) peak = placed.peak[0], most = p;
    }
    return most;
  }

  // As it is.
  bool fits(const Program& program) const {
    if (std::ranges::any_of(program.buffers,
                            [&](const Buffer& b) { return b.state && homes_.contains(b.name); }))
      return false;
    Program p = program;
    place_buffers(p, state_places(programs_, homes_, tier_));
    return p.peak[index_of(Tier::kHbm)] <= budget_;
  }

  Absences move(const Program& program, bool new_homes) {
    const std::vector<BufferUses> uses = uses_of_buffers(program, movable_);
    const std::vector<Nanos> durations = estimate_durations(program, machine_, device_);
    const Timeline timeline = timeline_of(program, durations);
    const auto transfer = [this](Bytes b) {
      return Nanos(std::llround(transfer_cost(b, tier_, machine_).nanos()));
    };
    const OffloadProblem problem{
        program, uses, timeline, transfer, budget_ - state_elsewhere(program), homes_in(program), new_homes};
    const Rehearsal rehearsal(program, uses, durations, transfer, alignment_of(tier_));
    std::vector<Policy> policies{plan_by_gaps, plan_by_hiding, plan_by_next_use};
    if (memory_.policy == "hyperoffload") policies.push_back(plan_by_remaking);
    if (memory_.policy == "reactive") policies = {react};
    if (memory_.policy == "hyperoffload") policies.push_back(react);
    std::optional<Attempt> best;
    for (const Policy policy : policies) {
      if (best && (best->hopeless || is_good_enough(*best, problem))) break;
      Attempt attempt = try_often(problem, rehearsal, policy);
      if (!best || attempt.better_than(*best, budget_)) best = std::move(attempt);
    }
    return std::move(best->absences);
  }

  struct Attempt {
    Absences absences;
    Bytes target{}, peak{};  // of what lives at once, and with places
    Timeline timeline;
    bool hopeless = false;  // nothing that moves would make it fit

    bool better_than(const Attempt& other, Bytes budget) const {
      const bool fits = peak <= budget, other_fits = other.peak <= budget;
      if (fits != other_fits) return fits;
      return fits ? timeline.length < other.timeline.length : peak < other.peak;
    }
  };

  // No plan takes less time than none. `problem`: with the times of none.
  bool is_good_enough(const Attempt& a, const OffloadProblem& problem) const {
    return a.peak <= budget_ &&
           a.timeline.length <= problem.timeline.length + problem.timeline.length / kLeastGain;
  }

  // Where transfers hold instructions up, the plan was made for other times than come true: it is made again
  // for those.
  Attempt try_often(const OffloadProblem& problem, const Rehearsal& rehearsal, Policy policy) {
    Attempt best = try_to_fit(problem, rehearsal, policy);
    const auto is_held_up = [&] { return best.peak <= budget_ && !is_good_enough(best, problem); };
    for (int again = 1; again < kTimes && policy != react && is_held_up(); ++again) {
      Attempt attempt = try_to_fit(problem.with(best.timeline, best.target), rehearsal, policy);
      if (!attempt.better_than(best, budget_)) break;
      best = std::move(attempt);
    }
    return best;
  }

  Attempt try_to_fit(OffloadProblem problem, const Rehearsal& rehearsal, Policy policy) {
    const Bytes least = least_live(problem), target = problem.target;
    std::optional<Attempt> best;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Attempt a{policy(problem), problem.target};
      const Bytes state = state_below(problem.program, a.absences.homes);
      Rehearsal::Outcome outcome = rehearsal.of(a.absences, state, budget_);
      a.peak = outcome.peak;
      a.timeline = std::move(outcome.timeline);
      const Bytes over = a.peak - budget_;
      ++effort_.plans;
      if (over.value <= 0) ++effort_.fitting;
      if (!best || a.better_than(*best, budget_)) best = std::move(a);
      if (over.value <= 0 || problem.target <= least) break;
      problem.target = std::max(problem.target - std::max(over, budget_ / kLeastStep), least);
    }
    best->hopeless = target < least;
    return std::move(*best);
  }

  // Of all Programs, in HBM below what this one computes.
  Bytes state_below(const Program& program, const std::vector<std::int32_t>& homes) const {
    Names names = names_of(program, homes);
    names.insert(homes_.begin(), homes_.end());
    return state_places(programs_, names, tier_).below(program)[index_of(Tier::kHbm)];
  }

  // That this Program does not use, and that has its place in HBM.
  Bytes state_elsewhere(const Program& program) const {
    Bytes own{};
    for (const Buffer& b : program.buffers)
      if (b.state && !homes_.contains(b.name)) own += Bytes((b.bytes.value + 63) / 64 * 64);
    return state_below(program, {}) - own;
  }

  std::vector<std::int32_t> homes_in(const Program& program) const {
    std::vector<std::int32_t> list;
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].state && homes_.contains(program.buffers[b].name))
        list.push_back(static_cast<std::int32_t>(b));
    return list;
  }

  const std::vector<Program>& programs_;
  const MemorySpec& memory_;
  const Machine machine_;
  int device_;
  Bytes budget_;
  Tier tier_;
  std::vector<Category> movable_;
  Names homes_;
  PlanningEffort effort_;
};

}  // namespace

std::vector<Absences> decide_moves(const std::vector<Program>& programs, const Job& job, int device,
                                   PlanningEffort* effort) {
  Deciding deciding(programs, job, device);
  std::vector<Absences> moves = deciding.run();
  if (effort != nullptr) *effort = deciding.effort();
  return moves;
}

StatePlaces move_and_place(std::vector<Program>& programs, const Job& job,
                           const std::vector<Absences>& moves) {
  const Tier tier = tier_of(job.memory);
  const std::vector<Category> movable = movable_categories(job.memory);
  Names homes;
  for (std::size_t p = 0; p < programs.size(); ++p) homes.merge(names_of(programs[p], moves[p].homes));
  const StatePlaces places = state_places(programs, homes, tier);
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const bool moved = moves[p] != Absences{};
    if (moved) apply(programs[p], uses_of_buffers(programs[p], movable), moves[p], tier);
    place_and_order(programs[p], places, moved ? job.supernode.hbm : Bytes(0));
  }
  return places;
}

}  // namespace hyperrun

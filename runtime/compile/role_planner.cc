#include "runtime/compile/role_planner.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "memory/offset_allocator.h"
#include "runtime/base/error.h"
#include "runtime/base/time_limit.h"
#include "runtime/compile/materialize_offload.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/estimate.h"
#include "runtime/offload/compress_period.h"
#include "runtime/offload/local_search.h"
#include "runtime/offload/plan_evaluator.h"
#include "runtime/offload/policy.h"

namespace hyperrun {
namespace {

// Attempts to plan a Program for less memory, after its buffers found no offsets within the budget.
constexpr int kAttempts = 16;
// The target shrinks by at least budget / kLeastStep per attempt.
constexpr std::int64_t kLeastStep = 128;
// Attempts to plan for the times that the last plan leads to.
constexpr int kTimes = 4;

// A plan is good enough within 1 / kLeastGain of the step time without transfers.
constexpr std::int64_t kLeastGain = 1000;

// Shorter Programs (in instructions) are planned whole: that is fast.
constexpr std::ptrdiff_t kMinCompressed = 8192;
// An expanded plan is accepted if the step is at most 1 / kLeastLoss longer than the compressed plan
// predicts.
constexpr std::int64_t kLeastLoss = 200;
constexpr int kExpansions = 3;            // attempts, each for less memory
constexpr std::size_t kSplicePoints = 2;  // tried per attempt

// The limit of local search, in evaluated instructions.
constexpr std::int64_t kLocalSearch = 40'000;

// Memory targets of a budget sweep, between the lowest peak and all in HBM.
constexpr int kSweepTargets = 8, kSweepTargetsOfLong = 1;

using Policy = OffloadPlan (*)(const OffloadProblem&);

// The live peak in HBM without state. Placed buffers take at least as much.
Bytes live_peak_without_state(const Program& program) {
  std::vector<Lifetime> lifetimes;
  for (const Buffer& b : program.buffers)
    lifetimes.push_back({-1, -1, b.state || b.tier != Tier::kHbm ? Bytes(0) : b.bytes});
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    each_use(program.instrs[i], [&](const Operand& o, bool, bool) {
      Lifetime& l = lifetimes[o.buffer.index()];
      if (l.first < 0) l.first = static_cast<std::int32_t>(i);
      l.last = static_cast<std::int32_t>(i);
    });
  return max_live(lifetimes);
}

Error takes_long(const Program& program) {
  return Error(Code::kDoesNotFit,
               fmt::format("to plan transfers of its {} instructions takes many minutes where a few "
                           "micro-batches do not say how: that is done where nothing else fits",
                           program.instrs.size()))
      .at("supernode.hbm")
      .fix("raise it, divide the model and its samples over more devices, or compile the job by itself");
}

}  // namespace

class RolePlanner::Impl {
 public:
  Impl(const std::vector<Program>& programs, const Job& job, const std::string& policy, int device,
       const Refusals& refusals)
      : programs_(programs),
        policies_(policies_of(policy)),
        longest_(policies_.size() > 1 ? refusals.longest : Refusals{}.longest),
        machine_(machine_of(job.supernode)),
        device_(device),
        budget_(job.supernode.hbm),
        tier_(tier_of(job.memory)),
        movable_(movable_categories(job.memory)) {}

  std::vector<OffloadPlan> run() {
    std::vector<OffloadPlan> moves(programs_.size());
    if (policies_.empty()) return moves;
    offloaded_state_.clear();
    const std::ptrdiff_t first = deciding_program();
    if (!fits(programs_[static_cast<std::size_t>(first)])) offloaded_state_ = updated_elsewhere(first);
    const auto decide = [&](std::ptrdiff_t p, bool may_offload_state) {
      const Program& program = programs_[static_cast<std::size_t>(p)];
      if (!fits(program)) moves[static_cast<std::size_t>(p)] = plan_transfers(program, may_offload_state);
      return names_of(program, moves[static_cast<std::size_t>(p)].offloaded_state);
    };
    offloaded_state_.merge(decide(first, true));
    for (std::ptrdiff_t p = 0; p < std::ssize(programs_); ++p)
      if (p != first) decide(p, false);
    return moves;
  }

  bool is_hopeless() {
    offloaded_state_.clear();
    first_ = deciding_program();
    if (policies_.empty()) return false;
    prepare_first();
    offloaded_state_ = updated_elsewhere(first_);
    const Bytes least = state_elsewhere(first_subject_->program) + lowest_live_peak(first_subject_->problem);
    offloaded_state_.clear();
    return least > budget_;
  }

  const std::vector<RolePlan>& extremes() {
    if (!sweep_.empty()) return sweep_;
    offloaded_state_.clear();
    first_ = deciding_program();
    sweep_.push_back(unmoved());
    if (policies_.empty()) return sweep_;
    prepare_first();
    sweep_.push_back(plan_for(policies_.front(), Bytes(0)));
    return sweep_;
  }

  bool fits_in(Bytes hbm) {
    offloaded_state_.clear();
    first_ = deciding_program();
    if (all_fit_unmoved(hbm)) return true;
    if (policies_.empty()) return false;
    prepare_first();
    const OffloadPlan plan =
        policies_.front()(first_subject_->problem.with(first_subject_->timeline, Bytes(0)));
    if (!fits(*first_subject_, plan, hbm)) return false;
    offloaded_state_ = names_of(first_subject_->program, plan.offloaded_state);
    bool all = true;
    for (std::ptrdiff_t p = 0; p < std::ssize(programs_) && all; ++p)
      all = p == first_ || other_fits_in(programs_[static_cast<std::size_t>(p)], hbm);
    offloaded_state_.clear();
    return all;
  }

  const std::vector<RolePlan>& budget_sweep() {
    for (const Program& program : programs_) refuse_if_long(program);
    extremes();
    if (!first_subject_ || is_swept_) return sweep_;
    is_swept_ = true;
    if (std::optional<RolePlan> others = others_only()) sweep_.push_back(std::move(*others));
    const std::vector<Bytes> targets = sweep_targets(*first_subject_, sweep_.front().hbm);
    for (const Policy policy : policies_)
      for (const Bytes target : targets)
        if (policy != policies_.front() || target.value > 0) sweep_.push_back(plan_for(policy, target));
    return sweep_;
  }

  const PlanningEffort& effort() const { return effort_; }

 private:
  // The Program that decides which state is offloaded: the training step, else the one with the highest peak.
  std::ptrdiff_t deciding_program() const {
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

  // Optimizer state that Program `first` (the deciding one) does not use. It exists where the update is a
  // Program of its own, and it is offloaded as soon as anything moves.
  BufferNames updated_elsewhere(std::ptrdiff_t first) const {
    BufferNames names;
    if (std::ranges::find(movable_, Category::kOptimizer) == movable_.end()) return names;
    for (const Program& program : programs_)
      for (const Buffer& b : program.buffers)
        if (b.state && b.category == Category::kOptimizer) names.insert(b.name);
    for (const Buffer& b : programs_[static_cast<std::size_t>(first)].buffers) names.erase(b.name);
    return names;
  }

  // Fits the budget without transfers.
  bool fits(const Program& program) const {
    return !has_offloaded_state(program) && fits_unmoved(program, budget_);
  }

  bool fits_unmoved(const Program& program, Bytes hbm) const {
    if (state_below(program, {}) + live_peak_without_state(program) > hbm) return false;
    return unmoved_peak(program, hbm) <= hbm;
  }

  // A Program, whole or compressed, with the inputs of its planning.
  struct Subject {
    Subject(const Impl& d, const Program& p, std::vector<Nanos> lasts, bool may_offload, Bytes within,
            const CompressedProgram* compressed_program = nullptr)
        : program(p),
          compressed(compressed_program),
          budget(within),
          may_offload_state(may_offload),
          transfer([&d](Bytes b) { return d.transfer(b); }),
          uses(uses_of_buffers(p, d.movable_)),
          timeline(timeline_of(p, lasts)),
          evaluator(p, uses, std::move(lasts), transfer, alignment_of(d.tier_),
                    compressed_program != nullptr ? compressed_program->share_of(kMostPairs) : kMostPairs),
          problem{p,          uses, timeline, transfer, within - d.state_elsewhere(p), d.offloaded_in(p),
                  may_offload} {}

    // The length of the whole Program, if this is a compressed one.
    std::int64_t length(const Timeline& t) const {
      return compressed != nullptr ? compressed->length_of_whole(t) : t.length;
    }

    const Program& program;
    const CompressedProgram* compressed;
    Bytes budget;
    bool may_offload_state;
    std::function<Nanos(Bytes)> transfer;
    std::vector<BufferUses> uses;
    Timeline timeline;
    PlanEvaluator evaluator;
    OffloadProblem problem;
  };

  struct Attempt {
    OffloadPlan plan;
    Bytes target{};  // of live bytes
    Bytes peak{};    // of placed buffers
    Timeline timeline;
    std::int64_t length = 0;  // ns, of the whole Program
    bool hopeless = false;    // no plan would make it fit
    Policy policy = nullptr;
    bool as_promised = false;  // the expanded plan is about as fast as the compressed one predicted

    bool better_than(const Attempt& other, Bytes budget) const {
      const bool fits = peak <= budget, other_fits = other.peak <= budget;
      if (fits != other_fits) return fits;
      return fits ? length < other.length : peak < other.peak;
    }
  };

  Nanos transfer(Bytes b) const { return Nanos(std::llround(transfer_cost(b, tier_, machine_).nanos())); }

  OffloadPlan plan_transfers(const Program& program, bool may_offload_state) {
    const Subject whole(*this, program, estimate_durations(program, machine_, device_), may_offload_state,
                        budget_);
    std::optional<Attempt> few = plan_compressed(whole);
    if (few && few->as_promised) return std::move(few->plan);
    refuse_if_long(program);
    Attempt all = std::move(attempts(whole).front());
    return std::move(few && few->better_than(all, budget_) ? few->plan : all.plan);
  }

  void refuse_if_long(const Program& program) const {
    if (program.instrs.size() > longest_) throw takes_long(program);
  }

  // One attempt by each policy until one is good enough, sorted with the best first.
  std::vector<Attempt> attempts(const Subject& s) {
    std::vector<Attempt> list;
    for (const Policy policy : policies_) {
      if (!list.empty() && (list.front().hopeless || is_good_enough(list.front(), s))) break;
      list.push_back(plan_for_real_times(s, policy));
      std::ranges::stable_sort(
          list, [&](const Attempt& a, const Attempt& b) { return a.better_than(b, s.budget); });
    }
    if (policies_.size() > 1 && s.compressed == nullptr && !is_good_enough(list.front(), s)) improve(list, s);
    return list;
  }

  // Improves each attempt by local search, and also a plan that moves nothing but the best one's state.
  void improve(std::vector<Attempt>& list, const Subject& s) {
    if (list.front().hopeless) return;
    OffloadPlan state_only = list.front().plan;
    std::erase_if(state_only.evictions, [&](const Eviction& a) {
      return !std::ranges::binary_search(state_only.offloaded_state, a.buffer);
    });
    list.push_back(evaluated(s, std::move(state_only), list.front().target));
    for (Attempt& a : list) {
      const Bytes state = state_below(s.program, a.plan.offloaded_state);
      const auto improve_one = &a == &list.back() ? improved_from_extremes : improved;
      OffloadPlan plan = improve_one(s.evaluator, a.plan, state, s.budget, kLocalSearch);
      if (plan == a.plan) continue;
      Attempt other = evaluated(s, std::move(plan), a.target);
      other.policy = a.policy;
      a = std::move(other);
    }
    std::ranges::stable_sort(list,
                             [&](const Attempt& a, const Attempt& b) { return a.better_than(b, s.budget); });
  }

  // Plans a Program of many micro-batches by a compressed one with few, then evaluates the expanded plans on
  // the whole Program while they may be the best. Returns nullopt if none fits.
  std::optional<Attempt> plan_compressed(const Subject& whole) {
    if (std::ssize(whole.program.instrs) < kMinCompressed) return std::nullopt;
    const std::optional<CompressedProgram> compressed = compress_period(
        whole.program, whole.uses, whole.evaluator.durations(), whole.timeline, transfer(budget_));
    if (!compressed) return std::nullopt;
    Subject few(*this, compressed->program, compressed->durations, whole.may_offload_state, budget_,
                &*compressed);
    std::optional<Attempt> best;
    for (Attempt& attempt : attempts(few)) {
      if (attempt.peak > budget_ || (best && best->length <= attempt.length)) break;
      std::optional<Attempt> a = expand(whole, few, std::move(attempt));
      if (a && (!best || a->length < best->length)) best = std::move(a);
    }
    return best;
  }

  // Expands the plan of a compressed Program. If its buffers find no offsets within the budget, the
  // compressed Program is planned again for less memory.
  std::optional<Attempt> expand(const Subject& whole, Subject& few, Attempt attempt) {
    std::optional<Attempt> best;
    for (int again = 0; again < kExpansions && attempt.peak <= few.budget; ++again) {
      Attempt a = expanded(whole, few, attempt);
      a.as_promised = a.length <= attempt.length + attempt.length / kLeastLoss;
      if (a.peak <= budget_) best = std::move(a);
      if (best) break;
      const Bytes over = std::max(a.peak - budget_, budget_ / kLeastStep);
      if (over > few.budget / 2) break;
      few.budget -= over;
      attempt = plan_to_fit(few, few.problem.with(attempt.timeline, attempt.target - over), attempt.policy);
    }
    few.budget = budget_;
    return best;
  }

  // Expands at one splice point after another until the plan fits and is fast enough.
  Attempt expanded(const Subject& whole, const Subject& few, const Attempt& attempt) {
    Attempt best{.peak = Bytes(std::numeric_limits<std::int64_t>::max())};
    std::vector<std::int32_t> splice_points = few.compressed->splice_points();
    splice_points.resize(std::min(splice_points.size(), kSplicePoints));
    for (const std::int32_t splice : splice_points) {
      auto plan = expand_period(*few.compressed, attempt.plan, few.uses, whole.program, whole.uses, splice);
      if (!plan) continue;
      Attempt a = evaluated(whole, std::move(*plan), attempt.target);
      if (a.better_than(best, budget_)) best = std::move(a);
      if (best.peak <= budget_ && best.length <= attempt.length + attempt.length / kLeastLoss) break;
    }
    return best;
  }

  // No plan can be faster than the step without transfers.
  bool is_good_enough(const Attempt& a, const Subject& s) const {
    const std::int64_t least = s.length(s.timeline);
    return a.peak <= s.budget && a.length <= least + least / kLeastGain;
  }

  // Transfers that delay instructions invalidate the times that the plan was made for. So it is made again
  // for the resulting times.
  Attempt plan_for_real_times(const Subject& s, Policy policy) {
    Attempt best = plan_to_fit(s, s.problem, policy);
    const auto is_held_up = [&] { return best.peak <= s.budget && !is_good_enough(best, s); };
    for (int again = 1; again < kTimes && policy != lru_policy && is_held_up(); ++again) {
      Attempt attempt = plan_to_fit(s, s.problem.with(best.timeline, best.target), policy);
      if (!attempt.better_than(best, s.budget)) break;
      best = std::move(attempt);
    }
    return best;
  }

  Attempt plan_to_fit(const Subject& s, OffloadProblem problem, Policy policy) {
    const Bytes least = lowest_live_peak(problem), target = problem.target;
    std::optional<Attempt> best;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      check_time();
      Attempt a = evaluated(s, policy(problem), problem.target);
      const Bytes over = a.peak - s.budget;
      if (!best || a.better_than(*best, s.budget)) best = std::move(a);
      if (over.value <= 0 || problem.target <= least) break;
      problem.target = std::max(problem.target - std::max(over, budget_ / kLeastStep), least);
    }
    best->hopeless = target < least;
    best->policy = policy;
    return std::move(*best);
  }

  Attempt evaluated(const Subject& s, OffloadPlan plan, Bytes target) {
    PlanEvaluator::Outcome outcome =
        s.evaluator.evaluate(plan, state_below(s.program, plan.offloaded_state), s.budget);
    ++effort_.plans;
    if (outcome.peak <= s.budget) ++effort_.fitting;
    const std::int64_t length = s.length(outcome.timeline);
    return {std::move(plan), target, outcome.peak, std::move(outcome.timeline), length};
  }

  // --- plans that do not depend on the budget ---------------------------------------------------------

  static std::vector<Policy> policies_of(const std::string& policy) {
    if (policy == "none") return {};
    if (policy == "reactive") return {lru_policy};
    std::vector<Policy> list{gap_policy, hidden_state_policy, belady_policy};
    if (policy == "hyperoffload") list.insert(list.end(), {rematerialize_policy, slack_policy, lru_policy});
    return list;
  }

  // Targets from the lowest live peak to all in HBM.
  std::vector<Bytes> sweep_targets(const Subject& s, Bytes unmoved) const {
    const Bytes least = lowest_live_peak(s.problem), most = unmoved - state_elsewhere(s.program);
    const int n = std::ssize(s.program.instrs) < kMinCompressed ? kSweepTargets : kSweepTargetsOfLong;
    std::vector<Bytes> targets{Bytes(0)};
    for (int k = 0; k < n && least < most; ++k)
      targets.push_back(least + Bytes((most - least).value / n * k));
    return targets;
  }

  void prepare_first() {
    const Program& program = programs_[static_cast<std::size_t>(first_)];
    if (!first_subject_)
      first_subject_.emplace(*this, program, estimate_durations(program, machine_, device_), true, budget_);
  }

  // The peak without transfers: the lowest that is found, or one within `enough`.
  Bytes unmoved_peak(const Program& program, Bytes enough = Bytes(0)) const {
    Program p = program;
    place_buffers(p, state_places(programs_, offloaded_state_, tier_), enough);
    return p.peak[index_of(Tier::kHbm)];
  }

  RolePlan unmoved() const {
    RolePlan role_plan{std::vector<OffloadPlan>(programs_.size())};
    for (const Program& program : programs_) role_plan.hbm = std::max(role_plan.hbm, unmoved_peak(program));
    const Program& program = programs_[static_cast<std::size_t>(first_)];
    role_plan.length = timeline_of(program, estimate_durations(program, machine_, device_)).length;
    return role_plan;
  }

  // Evictions in the other Programs only. All state stays in HBM.
  std::optional<RolePlan> others_only() {
    const Program& program = programs_[static_cast<std::size_t>(first_)];
    RolePlan role_plan{std::vector<OffloadPlan>(programs_.size()), unmoved_peak(program), Bytes(0),
                       sweep_.front().length};
    if (role_plan.hbm == sweep_.front().hbm) return std::nullopt;
    add_others(role_plan);
    return role_plan;
  }

  RolePlan plan_for(Policy policy, Bytes target) {
    offloaded_state_ = updated_elsewhere(first_);
    OffloadPlan plan = policy(first_subject_->problem.with(first_subject_->timeline, target));
    const LowestPeak of_first = lowest_peak(*first_subject_, plan);
    RolePlan role_plan{std::vector<OffloadPlan>(programs_.size()), of_first.hbm, of_first.beyond,
                       of_first.length};
    offloaded_state_.merge(names_of(first_subject_->program, plan.offloaded_state));
    role_plan.moves[static_cast<std::size_t>(first_)] = std::move(plan);
    add_others(role_plan);
    offloaded_state_.clear();
    return role_plan;
  }

  // Adds plans of the other Programs, with peaks as low as the first one's if possible.
  void add_others(RolePlan& role_plan) {
    for (std::ptrdiff_t p = 0; p < std::ssize(programs_); ++p)
      if (p != first_) add_other(role_plan, static_cast<std::size_t>(p));
  }

  void add_other(RolePlan& role_plan, std::size_t p) {
    const Program& program = programs_[p];
    std::optional<LowestPeak> best;
    if (!has_offloaded_state(program)) best = {unmoved_peak(program), Bytes(0), 0};
    if (!best || best->hbm > role_plan.hbm) {
      const Subject s(*this, program, estimate_durations(program, machine_, device_), false, budget_);
      const Bytes most = best ? best->hbm : Bytes(0);
      for (const Policy policy : policies_)
        for (const Bytes target : sweep_targets(s, most)) {
          if (best && best->hbm <= role_plan.hbm) break;
          OffloadPlan plan = policy(s.problem.with(s.timeline, target));
          const LowestPeak one = lowest_peak(s, plan);
          if (best && best->hbm <= one.hbm) continue;
          best = one;
          role_plan.moves[p] = std::move(plan);
        }
    }
    role_plan.hbm = std::max(role_plan.hbm, best->hbm);
    role_plan.beyond = std::max(role_plan.beyond, best->beyond);
  }

  // --- fits_in(): like plan_for(), without times ------------------------------------------------------

  bool all_fit_unmoved(Bytes hbm) const {
    return std::ranges::all_of(programs_, [&](const Program& p) { return fits_unmoved(p, hbm); });
  }

  bool fits(const Subject& s, const OffloadPlan& plan, Bytes hbm) {
    ++effort_.plans;
    const bool fits = s.evaluator.fits(plan, state_below(s.program, plan.offloaded_state), hbm);
    if (fits) ++effort_.fitting;
    return fits;
  }

  // For Programs other than the first.
  bool other_fits_in(const Program& program, Bytes hbm) {
    const bool has = has_offloaded_state(program);
    if (!has && fits_unmoved(program, hbm)) return true;
    const Subject s(*this, program, estimate_durations(program, machine_, device_), false, budget_);
    const std::vector<Bytes> targets = sweep_targets(s, has ? Bytes(0) : unmoved_peak(program));
    return std::ranges::any_of(policies_, [&](const Policy policy) {
      return std::ranges::any_of(
          targets, [&](Bytes target) { return fits(s, policy(s.problem.with(s.timeline, target)), hbm); });
    });
  }

  struct LowestPeak {
    Bytes hbm{}, beyond{};
    std::int64_t length = 0;
  };

  LowestPeak lowest_peak(const Subject& s, const OffloadPlan& plan) {
    const PlanEvaluator::Outcome outcome =
        s.evaluator.evaluate_lowest(plan, state_below(s.program, plan.offloaded_state));
    ++effort_.plans;
    if (outcome.peak <= budget_) ++effort_.fitting;
    return {outcome.peak, beyond(s.program, plan.offloaded_state, outcome.beyond), outcome.timeline.length};
  }

  // The peak in the lower tier with state, equal to place_buffers()'s.
  Bytes beyond(const Program& program, const std::vector<std::int32_t>& offloaded_state,
               Bytes temporary) const {
    BufferNames names = names_of(program, offloaded_state);
    names.insert(offloaded_state_.begin(), offloaded_state_.end());
    const StatePlaces places = state_places(programs_, names, tier_);
    Bytes most{};
    if (temporary.value > 0) most = places.below(program)[index_of(tier_)] + temporary;
    for (const Buffer& b : program.buffers)
      if (b.state && names.contains(b.name)) most = std::max(most, places.places.at(b.name).offset + b.bytes);
    return most;
  }

  bool has_offloaded_state(const Program& program) const {
    return std::ranges::any_of(program.buffers,
                               [&](const Buffer& b) { return b.state && offloaded_state_.contains(b.name); });
  }

  // HBM that the state of all Programs takes below this one's temporary buffers.
  Bytes state_below(const Program& program, const std::vector<std::int32_t>& offloaded_state) const {
    BufferNames names = names_of(program, offloaded_state);
    names.insert(offloaded_state_.begin(), offloaded_state_.end());
    return state_places(programs_, names, tier_).below(program)[index_of(Tier::kHbm)];
  }

  // Resident state that this Program does not use.
  Bytes state_elsewhere(const Program& program) const {
    Bytes own{};
    for (const Buffer& b : program.buffers)
      if (b.state && !offloaded_state_.contains(b.name)) own += Bytes((b.bytes.value + 63) / 64 * 64);
    return state_below(program, {}) - own;
  }

  std::vector<std::int32_t> offloaded_in(const Program& program) const {
    std::vector<std::int32_t> list;
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].state && offloaded_state_.contains(program.buffers[b].name))
        list.push_back(static_cast<std::int32_t>(b));
    return list;
  }

  const std::vector<Program>& programs_;
  std::vector<Policy> policies_;
  std::size_t longest_;  // instructions
  const Machine machine_;
  int device_;
  Bytes budget_;
  Tier tier_;
  std::vector<Category> movable_;
  BufferNames offloaded_state_;
  PlanningEffort effort_;
  std::ptrdiff_t first_ = 0;              // index of the deciding Program
  std::optional<Subject> first_subject_;  // the deciding Program
  std::vector<RolePlan> sweep_;
  bool is_swept_ = false;
};

RolePlanner::RolePlanner(const std::vector<Program>& programs, const Job& job, const std::string& policy,
                         int device, const Refusals& refusals)
    : impl_(std::make_unique<Impl>(programs, job, policy, device, refusals)) {}

RolePlanner::~RolePlanner() = default;

bool RolePlanner::is_hopeless() { return impl_->is_hopeless(); }
std::vector<OffloadPlan> RolePlanner::fastest() { return impl_->run(); }
bool RolePlanner::fits_in(Bytes hbm) { return impl_->fits_in(hbm); }
const std::vector<RolePlan>& RolePlanner::budget_sweep() { return impl_->budget_sweep(); }
const PlanningEffort& RolePlanner::effort() const { return impl_->effort(); }

}  // namespace hyperrun

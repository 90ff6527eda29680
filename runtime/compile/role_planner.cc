#include "runtime/compile/role_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "memory/offset_allocator.h"
#include "runtime/base/error.h"
#include "runtime/compile/move.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/estimate.h"
#include "runtime/offload/fold.h"
#include "runtime/offload/policy.h"
#include "runtime/offload/polish.h"
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

// A Program of fewer instructions is planned with all that it has: that takes no time.
constexpr std::ptrdiff_t kLeastFolded = 8192;
// More of a step's time than this share is not lost without a plan of all of it.
constexpr std::int64_t kLeastLoss = 200;
constexpr int kSpreads = 3;        // for less memory each
constexpr std::size_t kSeams = 2;  // that are tried

// Instructions of rehearsals for the last touch to a plan. Where each gap would take more than that, there is
// none.
constexpr std::int64_t kPolishing = 40'000;

// Memory that is planned for whatever the budget is, between the least and all; of long Programs less often.
constexpr int kRungs = 8, kRungsOfLong = 1;

using Policy = Absences (*)(const OffloadProblem&);

// What lives in HBM at once, beside state: places take no less.
Bytes least_beside_state(const Program& program) {
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
  return Error(Code::kDoesNotFit, "to plan transfers of its " + std::to_string(program.instrs.size()) +
                                      " instructions takes many minutes where a few micro-batches do not "
                                      "say how: that is done where nothing else fits")
      .at("supernode.hbm")
      .fix("raise it, divide the model and its samples over more devices, or compile the job by itself");
}

}  // namespace

class RolePlanner::Deciding {
 public:
  Deciding(const std::vector<Program>& programs, const Job& job, const std::string& policy, int device,
           const Refusals& refusals)
      : programs_(programs),
        policies_(policies_of(policy)),
        longest_(policies_.size() > 1 ? refusals.longest : Refusals{}.longest),
        machine_(machine_of(job.supernode)),
        device_(device),
        budget_(job.supernode.hbm),
        tier_(tier_of(job.memory)),
        movable_(movable_categories(job.memory)) {}

  std::vector<Absences> run() {
    std::vector<Absences> moves(programs_.size());
    if (policies_.empty()) return moves;
    homes_.clear();
    const std::ptrdiff_t first = fullest();
    if (!fits(programs_[static_cast<std::size_t>(first)])) homes_ = only_updated_beside(first);
    const auto decide = [&](std::ptrdiff_t p, bool new_homes) {
      const Program& program = programs_[static_cast<std::size_t>(p)];
      if (!fits(program)) moves[static_cast<std::size_t>(p)] = move(program, new_homes);
      return names_of(program, moves[static_cast<std::size_t>(p)].homes);
    };
    homes_.merge(decide(first, true));
    for (std::ptrdiff_t p = 0; p < std::ssize(programs_); ++p)
      if (p != first) decide(p, false);
    return moves;
  }

  bool is_hopeless() {
    homes_.clear();
    first_ = fullest();
    if (policies_.empty()) return false;
    know_first();
    homes_ = only_updated_beside(first_);
    const Bytes least = state_elsewhere(whole_->program) + least_live(whole_->problem);
    homes_.clear();
    return least > budget_;
  }

  const std::vector<RolePlan>& extremes() {
    if (!known_.empty()) return known_;
    homes_.clear();
    first_ = fullest();
    known_.push_back(as_it_is());
    if (policies_.empty()) return known_;
    know_first();
    known_.push_back(known(policies_.front(), Bytes(0)));
    return known_;
  }

  bool keeps_to(Bytes hbm) {
    homes_.clear();
    first_ = fullest();
    if (is_kept_as_it_is(hbm)) return true;
    if (policies_.empty()) return false;
    know_first();
    const Absences absences = policies_.front()(whole_->problem.with(whole_->timeline, Bytes(0)));
    if (!fits(*whole_, absences, hbm)) return false;
    homes_ = names_of(whole_->program, absences.homes);
    bool all = true;
    for (std::ptrdiff_t p = 0; p < std::ssize(programs_) && all; ++p)
      all = p == first_ || other_keeps_to(programs_[static_cast<std::size_t>(p)], hbm);
    homes_.clear();
    return all;
  }

  const std::vector<RolePlan>& ladder() {
    for (const Program& program : programs_) refuse_if_long(program);
    extremes();
    if (!whole_ || is_climbed_) return known_;
    is_climbed_ = true;
    if (std::optional<RolePlan> others = others_alone()) known_.push_back(std::move(*others));
    const std::vector<Bytes> targets = rungs(*whole_, known_.front().hbm);
    for (const Policy policy : policies_)
      for (const Bytes target : targets)
        if (policy != policies_.front() || target.value > 0) known_.push_back(known(policy, target));
    return known_;
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

  // Where the passes and the update are Programs of their own: state of the optimizer that Program `first`,
  // which decides about homes, does not use. Wherever something moves, that has its home beyond HBM.
  BufferNames only_updated_beside(std::ptrdiff_t first) const {
    BufferNames names;
    if (std::ranges::find(movable_, Category::kOptimizer) == movable_.end()) return names;
    for (const Program& program : programs_)
      for (const Buffer& b : program.buffers)
        if (b.state && b.category == Category::kOptimizer) names.insert(b.name);
    for (const Buffer& b : programs_[static_cast<std::size_t>(first)].buffers) names.erase(b.name);
    return names;
  }

  // As it is.
  bool fits(const Program& program) const {
    return !has_home(program) && keeps_to_as_it_is(program, budget_);
  }

  bool keeps_to_as_it_is(const Program& program, Bytes hbm) const {
    if (state_below(program, {}) + least_beside_state(program) > hbm) return false;
    return peak_as_it_is(program, hbm) <= hbm;
  }

  // A Program, or the fold of one, and what planning knows of it.
  struct Subject {
    Subject(const Deciding& d, const Program& p, std::vector<Nanos> lasts, bool new_homes_too, Bytes within,
            const Fold* folded = nullptr)
        : program(p),
          fold(folded),
          budget(within),
          new_homes(new_homes_too),
          transfer([&d](Bytes b) { return d.transfer(b); }),
          uses(uses_of_buffers(p, d.movable_)),
          timeline(timeline_of(p, lasts)),
          rehearsal(p, uses, std::move(lasts), transfer, alignment_of(d.tier_),
                    folded != nullptr ? folded->share_of(kMostPairs) : kMostPairs),
          problem{p, uses, timeline, transfer, within - d.state_elsewhere(p), d.homes_in(p), new_homes_too} {}

    // Of the whole, where this is the fold.
    std::int64_t length(const Timeline& t) const {
      return fold != nullptr ? fold->length_of_whole(t) : t.length;
    }

    const Program& program;
    const Fold* fold;
    Bytes budget;
    bool new_homes;
    std::function<Nanos(Bytes)> transfer;
    std::vector<BufferUses> uses;
    Timeline timeline;
    Rehearsal rehearsal;
    OffloadProblem problem;
  };

  struct Attempt {
    Absences absences;
    Bytes target{}, peak{};  // of what lives at once, and with places
    Timeline timeline;
    std::int64_t length = 0;  // of the whole
    bool hopeless = false;    // nothing that moves would make it fit
    Policy policy = nullptr;
    bool as_promised = false;  // takes all no more time than a few of them have let expect

    bool better_than(const Attempt& other, Bytes budget) const {
      const bool fits = peak <= budget, other_fits = other.peak <= budget;
      if (fits != other_fits) return fits;
      return fits ? length < other.length : peak < other.peak;
    }
  };

  Nanos transfer(Bytes b) const { return Nanos(std::llround(transfer_cost(b, tier_, machine_).nanos())); }

  Absences move(const Program& program, bool new_homes) {
    const Subject whole(*this, program, estimate_durations(program, machine_, device_), new_homes, budget_);
    std::optional<Attempt> few = move_folded(whole);
    if (few && few->as_promised) return std::move(few->absences);
    refuse_if_long(program);
    Attempt all = std::move(attempts(whole).front());
    return std::move(few && few->better_than(all, budget_) ? few->absences : all.absences);
  }

  void refuse_if_long(const Program& program) const {
    if (program.instrs.size() > longest_) throw takes_long(program);
  }

  // By each policy, unless one is good enough; the best first.
  std::vector<Attempt> attempts(const Subject& s) {
    std::vector<Attempt> list;
    for (const Policy policy : policies_) {
      if (!list.empty() && (list.front().hopeless || is_good_enough(list.front(), s))) break;
      list.push_back(try_often(s, policy));
      std::ranges::stable_sort(
          list, [&](const Attempt& a, const Attempt& b) { return a.better_than(b, s.budget); });
    }
    if (policies_.size() > 1 && s.fold == nullptr && !is_good_enough(list.front(), s)) polish(list, s);
    return list;
  }

  // Each, and the best one's state with nothing else that moves.
  void polish(std::vector<Attempt>& list, const Subject& s) {
    if (list.front().hopeless) return;
    Absences of_state = list.front().absences;
    std::erase_if(of_state.list,
                  [&](const Absence& a) { return !std::ranges::binary_search(of_state.homes, a.buffer); });
    list.push_back(rehearsed(s, std::move(of_state), list.front().target));
    for (Attempt& a : list) {
      const Bytes state = state_below(s.program, a.absences.homes);
      const auto polishing = &a == &list.back() ? polished_from_all : polished;
      Absences absences = polishing(s.rehearsal, a.absences, state, s.budget, kPolishing);
      if (absences == a.absences) continue;
      Attempt other = rehearsed(s, std::move(absences), a.target);
      other.policy = a.policy;
      a = std::move(other);
    }
    std::ranges::stable_sort(list,
                             [&](const Attempt& a, const Attempt& b) { return a.better_than(b, s.budget); });
  }

  // Of a Program of many micro-batches that repeat, as a few of them are planned. What those come to is found
  // with all, for each plan that may still be the best. Nothing, where none fits.
  std::optional<Attempt> move_folded(const Subject& whole) {
    if (std::ssize(whole.program.instrs) < kLeastFolded) return std::nullopt;
    const std::optional<Fold> fold = hyperrun::fold(whole.program, whole.uses, whole.rehearsal.durations(),
                                                    whole.timeline, transfer(budget_));
    if (!fold) return std::nullopt;
    Subject few(*this, fold->program, fold->durations, whole.new_homes, budget_, &*fold);
    std::optional<Attempt> best;
    for (Attempt& attempt : attempts(few)) {
      if (attempt.peak > budget_ || (best && best->length <= attempt.length)) break;
      std::optional<Attempt> a = spread(whole, few, std::move(attempt));
      if (a && (!best || a->length < best->length)) best = std::move(a);
    }
    return best;
  }

  // The whole's plan that one of a few micro-batches is, which is made again for less where all find no
  // places in the budget.
  std::optional<Attempt> spread(const Subject& whole, Subject& few, Attempt attempt) {
    std::optional<Attempt> best;
    for (int again = 0; again < kSpreads && attempt.peak <= few.budget; ++again) {
      Attempt a = unfolded(whole, few, attempt);
      a.as_promised = a.length <= attempt.length + attempt.length / kLeastLoss;
      if (a.peak <= budget_) best = std::move(a);
      if (best) break;
      const Bytes over = std::max(a.peak - budget_, budget_ / kLeastStep);
      if (over > few.budget / 2) break;
      few.budget -= over;
      attempt = try_to_fit(few, few.problem.with(attempt.timeline, attempt.target - over), attempt.policy);
    }
    few.budget = budget_;
    return best;
  }

  // The first one that fits, as each may be the micro-batch that all that are left out are like.
  Attempt unfolded(const Subject& whole, const Subject& few, const Attempt& attempt) {
    Attempt best{.peak = Bytes(std::numeric_limits<std::int64_t>::max())};
    std::vector<std::int32_t> seams = few.fold->seams();
    seams.resize(std::min(seams.size(), kSeams));
    for (const std::int32_t seam : seams) {
      auto absences = unfold(*few.fold, attempt.absences, few.uses, whole.program, whole.uses, seam);
      if (!absences) continue;
      Attempt a = rehearsed(whole, std::move(*absences), attempt.target);
      if (a.better_than(best, budget_)) best = std::move(a);
      if (best.peak <= budget_ && best.length <= attempt.length + attempt.length / kLeastLoss) break;
    }
    return best;
  }

  // No plan takes less time than none.
  bool is_good_enough(const Attempt& a, const Subject& s) const {
    const std::int64_t least = s.length(s.timeline);
    return a.peak <= s.budget && a.length <= least + least / kLeastGain;
  }

  // Where transfers hold instructions up, the plan was made for other times than come true: it is made again
  // for those.
  Attempt try_often(const Subject& s, Policy policy) {
    Attempt best = try_to_fit(s, s.problem, policy);
    const auto is_held_up = [&] { return best.peak <= s.budget && !is_good_enough(best, s); };
    for (int again = 1; again < kTimes && policy != react && is_held_up(); ++again) {
      Attempt attempt = try_to_fit(s, s.problem.with(best.timeline, best.target), policy);
      if (!attempt.better_than(best, s.budget)) break;
      best = std::move(attempt);
    }
    return best;
  }

  Attempt try_to_fit(const Subject& s, OffloadProblem problem, Policy policy) {
    const Bytes least = least_live(problem), target = problem.target;
    std::optional<Attempt> best;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Attempt a = rehearsed(s, policy(problem), problem.target);
      const Bytes over = a.peak - s.budget;
      if (!best || a.better_than(*best, s.budget)) best = std::move(a);
      if (over.value <= 0 || problem.target <= least) break;
      problem.target = std::max(problem.target - std::max(over, budget_ / kLeastStep), least);
    }
    best->hopeless = target < least;
    best->policy = policy;
    return std::move(*best);
  }

  Attempt rehearsed(const Subject& s, Absences absences, Bytes target) {
    Rehearsal::Outcome outcome = s.rehearsal.of(absences, state_below(s.program, absences.homes), s.budget);
    ++effort_.plans;
    if (outcome.peak <= s.budget) ++effort_.fitting;
    const std::int64_t length = s.length(outcome.timeline);
    return {std::move(absences), target, outcome.peak, std::move(outcome.timeline), length};
  }

  // --- whatever the budget is -------------------------------------------------------------------------

  static std::vector<Policy> policies_of(const std::string& policy) {
    if (policy == "none") return {};
    if (policy == "reactive") return {react};
    std::vector<Policy> list{plan_by_gaps, plan_by_hiding, plan_by_next_use};
    if (policy == "hyperoffload") list.insert(list.end(), {plan_by_remaking, plan_by_streams, react});
    return list;
  }

  // From all away whenever it is not used to nothing that leaves.
  std::vector<Bytes> rungs(const Subject& s, Bytes as_it_is) const {
    const Bytes least = least_live(s.problem), most = as_it_is - state_elsewhere(s.program);
    const int n = std::ssize(s.program.instrs) < kLeastFolded ? kRungs : kRungsOfLong;
    std::vector<Bytes> targets{Bytes(0)};
    for (int k = 0; k < n && least < most; ++k)
      targets.push_back(least + Bytes((most - least).value / n * k));
    return targets;
  }

  void know_first() {
    const Program& program = programs_[static_cast<std::size_t>(first_)];
    if (!whole_)
      whole_.emplace(*this, program, estimate_durations(program, machine_, device_), true, budget_);
  }

  // The lowest, or one that is not above `enough`.
  Bytes peak_as_it_is(const Program& program, Bytes enough = Bytes(0)) const {
    Program p = program;
    place_buffers(p, state_places(programs_, homes_, tier_), enough);
    return p.peak[index_of(Tier::kHbm)];
  }

  RolePlan as_it_is() const {
    RolePlan plan{std::vector<Absences>(programs_.size())};
    for (const Program& program : programs_) plan.hbm = std::max(plan.hbm, peak_as_it_is(program));
    const Program& program = programs_[static_cast<std::size_t>(first_)];
    plan.length = timeline_of(program, estimate_durations(program, machine_, device_)).length;
    return plan;
  }

  // State stays where it is, and nothing moves in the first one.
  std::optional<RolePlan> others_alone() {
    const Program& program = programs_[static_cast<std::size_t>(first_)];
    RolePlan plan{std::vector<Absences>(programs_.size()), peak_as_it_is(program), Bytes(0),
                  known_.front().length};
    if (plan.hbm == known_.front().hbm) return std::nullopt;
    add_others(plan);
    return plan;
  }

  RolePlan known(Policy policy, Bytes target) {
    homes_ = only_updated_beside(first_);
    Absences absences = policy(whole_->problem.with(whole_->timeline, target));
    const Lowest of_first = lowest(*whole_, absences);
    RolePlan plan{std::vector<Absences>(programs_.size()), of_first.hbm, of_first.beyond, of_first.length};
    homes_.merge(names_of(whole_->program, absences.homes));
    plan.moves[static_cast<std::size_t>(first_)] = std::move(absences);
    add_others(plan);
    homes_.clear();
    return plan;
  }

  // As low as the first one is, or as low as they come.
  void add_others(RolePlan& plan) {
    for (std::ptrdiff_t p = 0; p < std::ssize(programs_); ++p)
      if (p != first_) add_other(plan, static_cast<std::size_t>(p));
  }

  void add_other(RolePlan& plan, std::size_t p) {
    const Program& program = programs_[p];
    std::optional<Lowest> best;
    if (!has_home(program)) best = {peak_as_it_is(program), Bytes(0), 0};
    if (!best || best->hbm > plan.hbm) {
      const Subject s(*this, program, estimate_durations(program, machine_, device_), false, budget_);
      const Bytes most = best ? best->hbm : Bytes(0);
      for (const Policy policy : policies_)
        for (const Bytes target : rungs(s, most)) {
          if (best && best->hbm <= plan.hbm) break;
          Absences absences = policy(s.problem.with(s.timeline, target));
          const Lowest one = lowest(s, absences);
          if (best && best->hbm <= one.hbm) continue;
          best = one;
          plan.moves[p] = std::move(absences);
        }
    }
    plan.hbm = std::max(plan.hbm, best->hbm);
    plan.beyond = std::max(plan.beyond, best->beyond);
  }

  // --- whether that keeps to some HBM: as known() has it, without what it comes to --------------------

  bool is_kept_as_it_is(Bytes hbm) const {
    return std::ranges::all_of(programs_, [&](const Program& p) { return keeps_to_as_it_is(p, hbm); });
  }

  bool fits(const Subject& s, const Absences& absences, Bytes hbm) {
    ++effort_.plans;
    const bool fits = s.rehearsal.fits(absences, state_below(s.program, absences.homes), hbm);
    if (fits) ++effort_.fitting;
    return fits;
  }

  // Of another than the first one.
  bool other_keeps_to(const Program& program, Bytes hbm) {
    const bool has = has_home(program);
    if (!has && keeps_to_as_it_is(program, hbm)) return true;
    const Subject s(*this, program, estimate_durations(program, machine_, device_), false, budget_);
    const std::vector<Bytes> targets = rungs(s, has ? Bytes(0) : peak_as_it_is(program));
    return std::ranges::any_of(policies_, [&](const Policy policy) {
      return std::ranges::any_of(
          targets, [&](Bytes target) { return fits(s, policy(s.problem.with(s.timeline, target)), hbm); });
    });
  }

  struct Lowest {
    Bytes hbm{}, beyond{};
    std::int64_t length = 0;
  };

  Lowest lowest(const Subject& s, const Absences& absences) {
    const Rehearsal::Outcome outcome = s.rehearsal.lowest(absences, state_below(s.program, absences.homes));
    ++effort_.plans;
    if (outcome.peak <= budget_) ++effort_.fitting;
    return {outcome.peak, beyond(s.program, absences.homes, outcome.beyond), outcome.timeline.length};
  }

  // With state; to the byte, as place_buffers() has it.
  Bytes beyond(const Program& program, const std::vector<std::int32_t>& homes, Bytes mortals) const {
    BufferNames names = names_of(program, homes);
    names.insert(homes_.begin(), homes_.end());
    const StatePlaces places = state_places(programs_, names, tier_);
    Bytes most{};
    if (mortals.value > 0) most = places.below(program)[index_of(tier_)] + mortals;
    for (const Buffer& b : program.buffers)
      if (b.state && names.contains(b.name)) most = std::max(most, places.places.at(b.name).offset + b.bytes);
    return most;
  }

  bool has_home(const Program& program) const {
    return std::ranges::any_of(program.buffers,
                               [&](const Buffer& b) { return b.state && homes_.contains(b.name); });
  }

  // Of all Programs, in HBM below what this one computes.
  Bytes state_below(const Program& program, const std::vector<std::int32_t>& homes) const {
    BufferNames names = names_of(program, homes);
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
  std::vector<Policy> policies_;
  std::size_t longest_;  // instructions
  const Machine machine_;
  int device_;
  Bytes budget_;
  Tier tier_;
  std::vector<Category> movable_;
  BufferNames homes_;
  PlanningEffort effort_;
  std::ptrdiff_t first_ = 0;      // that decides homes
  std::optional<Subject> whole_;  // the first one
  std::vector<RolePlan> known_;
  bool is_climbed_ = false;
};

RolePlanner::RolePlanner(const std::vector<Program>& programs, const Job& job, const std::string& policy,
                         int device, const Refusals& refusals)
    : deciding_(std::make_unique<Deciding>(programs, job, policy, device, refusals)) {}

RolePlanner::~RolePlanner() = default;

bool RolePlanner::is_hopeless() { return deciding_->is_hopeless(); }
std::vector<Absences> RolePlanner::fastest() { return deciding_->run(); }
bool RolePlanner::keeps_to(Bytes hbm) { return deciding_->keeps_to(hbm); }
const std::vector<RolePlan>& RolePlanner::ladder() { return deciding_->ladder(); }
const PlanningEffort& RolePlanner::effort() const { return deciding_->effort(); }

}  // namespace hyperrun

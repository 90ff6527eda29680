#include "runtime/plan/search.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/plan/forecast_calibration.h"

namespace hyperrun {
namespace {

constexpr std::size_t kOffloadedShare = 2;   // at most one in so many has transfers, once a strategy fits
constexpr std::size_t kSimulatedAtOnce = 2;  // simulations before the next leaders are chosen
// If nothing else fits: doubtful candidates to compile, without and with offloading.
constexpr std::size_t kUnlikely = 16, kUnlikelyOffloaded = 4;
// For small jobs: leaders with offloading of each kind, and limit of the passes of all of these.
constexpr std::size_t kMostOfAKind = 4;
constexpr std::int64_t kKindPasses = 8 * kQuickPasses;
// Compilations for each leader, and at least; some are refused.
constexpr std::size_t kTries = 4, kLeastTries = 16;

class Searcher {
 public:
  Searcher(const Job& base, const SearchOptions& options)
      : base_(base),
        options_(options),
        hbm_(base.supernode.hbm.value),
        share_(pool_share(base, *options.space).value) {}

  Search run() {
    Candidates candidates = candidates_of(base_, options_);
    static_cast<Survey&>(result_) = std::move(candidates.survey);
    forecasts_ = std::move(candidates.forecasts), unlikely_ = std::move(candidates.unlikely);
    least_dropped_ = candidates.least_dropped;
    result_.is_whole = false;
    simulate_leaders();
    result_.is_whole = true;
    return std::move(result_);
  }

 private:
  void report(const std::string& what, std::int64_t count) const {
    if (options_.progress) options_.progress(what, count);
  }

  // Refused strategies are replaced by others, so the number of tries is not known beforehand.
  void report_tried() const {
    const auto simulated =
        std::ranges::count_if(result_.leaders, [](const SimulatedCandidate& l) { return l.simulated > 0; });
    report(fmt::format("leaders tried, {} of up to {} simulated", simulated, most_simulated_), tried_);
  }

  void report_so_far() const {
    if (options_.so_far) options_.so_far(result_);
  }

  bool meets_constraints(const Strategy& s) const { return meets(options_.space->only, s); }

  bool is_small_enough(const Strategy& s) const { return can_be_simulated(base_, s, most_offloaded_); }

  // State of the search in one space: the leaders tried, and calibration from their simulations.
  struct SpaceSearch {
    const Space* space;
    std::vector<bool> tried;         // by index in forecasts_
    std::set<Family> families = {};  // families of those tried
    ForecastCalibration step_calibration = {}, hbm_calibration = {}, pool_calibration = {};
    std::size_t offloaded = 0, resident = 0;  // leaders tried with and without offloading
    std::size_t turn = 0;
    std::vector<Strategy> simulated = {};  // each once: a repair can turn two into one
  };

  // Strategies of a family are similar. So the best of every family come first, then the best of all.
  void simulate_leaders() {
    const std::vector<const Space*> spaces = options_.chosen_from();
    most_simulated_ = std::ssize(spaces) * std::max(1, options_.leaders);
    report_tried();
    search_space(*spaces.front());
    if (!result_.found()) simulate_larger(*spaces.front());
    if (!result_.found()) simulate_smallest();
    if (!result_.found() && options_.unlikely) simulate_unlikely();
    for (const Space* restricted : spaces | std::views::drop(1)) search_space(*restricted);
    for (std::size_t i = 0; i < forecasts_.size(); ++i)
      if (!is_covered(i))
        least_dropped_ = std::min(least_dropped_, bound_if_dropped(forecasts_[i], base_.supernode.hbm));
    result_.least_bound = least_dropped_;
  }

  // True if a strategy was tried and nothing near it is left to try. If placement refused it, variants with
  // other numbers of extra recomputing layers or with offloading may fit. Variants with fewer extra layers
  // are dropped with their forecasts.
  bool is_covered(std::size_t i) const {
    const auto known = known_.find(i);
    if (known == known_.end()) return false;
    const Strategy &asked = forecasts_[i].strategy, &is = known->second.strategy;
    if (offloads_instead(asked, is) || is.extra_recompute_layers > asked.extra_recompute_layers) return false;
    return known->second.simulated > 0 || known->second.fits;
  }

  // True if a strategy was simulated with offloading because it did not fit without.
  static bool offloads_instead(const Strategy& asked, const Strategy& is) {
    return asked.memory == PlanMemory::kNone && is.memory != PlanMemory::kNone;
  }

  void search_space(const Space& space) {
    SpaceSearch c{&space, std::vector<bool>(forecasts_.size())};
    search_space(c);
    if (options_.leaders > 1 && options_.of_each_kind) simulate_each_kind(c);
  }

  // Forecasts with offloading depend on what ZeRO gathers and on recomputation, and are wrong by half for
  // small tensors. So all leaders may be of kinds with too low forecasts, or none may offload. This tries
  // some of every kind.
  void simulate_each_kind(SpaceSearch& c) {
    if (std::int64_t{base_.model.layers} * base_.training.batch > kKindPasses || !result_.found()) return;
    std::map<std::pair<std::int32_t, PlanRecompute>, std::size_t> of_kind;
    std::array<std::vector<std::size_t>, kMostOfAKind>
        ranks;  // rank by rank: the first of every kind, the second, ...
    for (std::size_t i = 0; i < forecasts_.size(); ++i) {
      const Strategy& s = forecasts_[i].strategy;
      if (c.families.contains(family_of(s)) || !is_quick_offload(c, forecasts_[i])) continue;
      if (std::size_t& rank = of_kind[{s.zero, s.recompute}]; rank < kMostOfAKind) {
        ranks[rank++].push_back(i);
        c.families.insert(family_of(s));
      }
    }
    std::int64_t passes = 0;
    std::vector<std::size_t> some;
    for (const std::size_t i : std::views::join(ranks))
      if (const std::int64_t own = layer_passes(base_, forecasts_[i].strategy); passes + own <= kKindPasses)
        passes += own, some.push_back(i);
    most_simulated_ += std::ssize(some) + std::int64_t{kLeadersPerTurn};
    for (const std::size_t i : some) take(c, i);
    simulate_now(c, some);
    if (!some.empty()) simulate(c, c.simulated.size() + kLeadersPerTurn, false);
  }

  bool is_quick_offload(const SpaceSearch& c, const Forecasted& f) const {
    return f.strategy.memory != PlanMemory::kNone && may_be_best(c, f) &&
           layer_passes(base_, f.strategy) <= kQuickPasses;
  }

  // For jobs that fit only with offloading: tries strategies with more passes, and those refused because
  // planning takes long.
  void simulate_larger(const Space& space) {
    most_offloaded_ = options_.most_offloaded_passes;
    if (refusals() != options_.refusals) forget_refused();
    plans_long_ = true;
    SpaceSearch c{&space, std::vector<bool>(forecasts_.size())};
    for (const auto& [i, _] : known_) c.tried[i] = true;
    search_space(c);
  }

  // Forgets refused strategies whose transfers were not planned. They have no HBM figure.
  void forget_refused() {
    const auto was_refused = [](const SimulatedCandidate& l) {
      return l.strategy.memory != PlanMemory::kNone && !l.fits && l.hbm.value == 0;
    };
    std::erase_if(known_, [&](const auto& k) { return was_refused(k.second); });
    std::erase_if(result_.leaders, was_refused);
  }

  // Planning transfers of long steps takes many minutes, so they are refused while something else fits.
  Refusals refusals() const {
    Refusals refusals = options_.refusals;
    const bool leaves_long = !plans_long_ || result_.found();
    if (!refusals.hopeless && leaves_long) refusals.longest = options_.long_step;
    return refusals;
  }

  void search_space(SpaceSearch& c) {
    // Leaders are chosen in turns, so that a search with more leaders begins like one with fewer. The last of
    // a turn may be of a known family.
    const auto all = static_cast<std::size_t>(options_.leaders);
    std::size_t last_turn = 0;
    for (const Forecasted& f : forecasts_) last_turn = std::max(last_turn, f.turn);
    for (std::size_t until = kLeadersPerTurn; until < all + kLeadersPerTurn; until += kLeadersPerTurn) {
      const std::size_t tried = c.offloaded + c.resident;
      simulate(c, std::min(all, until - 1), true);
      simulate(c, std::min(all, until), false);
      if (c.offloaded + c.resident == tried && c.turn >= last_turn) break;
      ++c.turn;
    }
  }

  // If none of the fastest fits, another may: tries those that need least memory.
  void simulate_smallest() {
    std::vector<SimulatedCandidate> some(result_.smallest.size());
    report("that take least are tried", std::ssize(some));
    parallel_for(some.size(), [&](std::size_t i) {
      const MemoryNeed& needs = result_.smallest[i];
      if (needs.least.value <= hbm_)
        some[i] = simulate_in_wanted_order(needs.strategy,
                                           {.bound = needs.bound, .bound_with_extra = needs.bound_with_extra},
                                           options_.refusals);
    });
    adopt_where_found(std::move(some));
  }

  // Forecasts are too high for small tensors, because of padding, and for fixed bytes. Tries doubtful
  // strategies and those that made no leader.
  void simulate_unlikely() {
    for (std::size_t i = 0; i < forecasts_.size(); ++i)
      if (!known_.contains(i)) unlikely_.push_back(forecasts_[i]);
    const auto moves = [](const Forecasted& f) { return f.strategy.memory != PlanMemory::kNone; };
    std::erase_if(unlikely_, [&](const Forecasted& f) {
      return !can_be_simulated(base_, f.strategy,
                               std::min(options_.most_offloaded_passes, kFewOffloadedPasses));
    });
    std::ranges::stable_sort(unlikely_, {}, [&](const Forecasted& f) {
      return std::pair(moves(f) ? overcommit(f.forecast, hbm_, share_) : 0.0, f.forecast.memory);
    });
    std::vector<Forecasted> list;
    for (const bool offloaded : {false, true}) {
      const std::size_t most = list.size() + (offloaded ? kUnlikelyOffloaded : kUnlikely);
      for (const Forecasted& f : unlikely_)
        if (moves(f) == offloaded && list.size() < most) list.push_back(f);
    }
    std::vector<SimulatedCandidate> some(list.size());
    report("that hardly fit are tried", std::ssize(list));
    parallel_for(some.size(), [&](std::size_t i) {
      some[i] = simulate_in_wanted_order(list[i].strategy, list[i].forecast, {.hopeless = true});
    });
    // Hopeless ones have no figures.
    std::erase_if(some, [](const SimulatedCandidate& l) { return l.hbm.value == 0; });
    adopt_where_found(std::move(some));
  }

  // Simulates the first axis order that meets the constraints.
  SimulatedCandidate simulate_in_wanted_order(const Strategy& strategy, const Forecast& forecast,
                                              const Refusals& refusals) const {
    if (meets_constraints(strategy)) return tried(strategy, forecast, refusals);
    for (const Strategy& s : orders_of(strategy))
      if (meets_constraints(s)) return tried(s, forecast, refusals);
    return {};
  }

  // Adopts simulated candidates; if there are none, refused ones, which tell what is missing.
  void adopt_where_found(std::vector<SimulatedCandidate> some) {
    const bool found = std::ranges::any_of(some, [](const SimulatedCandidate& l) { return l.simulated > 0; });
    for (SimulatedCandidate& candidate : some)
      if (found ? candidate.simulated > 0 : !candidate.fits) adopt(std::move(candidate));
    sort_leaders();
    report_so_far();
  }

  // Simulates until `most` leaders have succeeded, a few at once. Refused ones are replaced.
  void simulate(SpaceSearch& c, std::size_t most, bool new_families) {
    const std::size_t tries = std::max(kTries * most, kLeastTries);
    while (c.simulated.size() < most && c.offloaded + c.resident < tries) {
      std::vector<std::size_t> now;
      for (std::size_t room = std::min(kSimulatedAtOnce, most - c.simulated.size()); room > 0; --room)
        if (const auto next = next_leader(c, new_families)) take(c, *next), now.push_back(*next);
      if (now.empty()) return;
      simulate_now(c, now);
    }
  }

  void take(SpaceSearch& c, std::size_t i) const {
    const Strategy& s = forecasts_[i].strategy;
    c.tried[i] = true;
    c.families.insert(family_of(s));
    (s.memory == PlanMemory::kNone ? c.resident : c.offloaded) += 1;
  }

  // One strategy without and one with offloading come first, to learn about both.
  std::optional<std::size_t> next_leader(const SpaceSearch& c, bool new_families) const {
    std::optional<std::size_t> next;
    if (c.resident == 0) next = most_promising(c, new_families, PlanMemory::kNone);
    if (!next && c.offloaded == 0) next = most_promising(c, new_families, PlanMemory::kHyperOffload);
    return next ? next : most_promising(c, new_families, std::nullopt);
  }

  // The best calibrated forecast. Strategies that do not fit by calibrated memory come last.
  std::optional<std::size_t> most_promising(const SpaceSearch& c, bool new_families,
                                            std::optional<PlanMemory> memory) const {
    const auto next = most_promising(c, new_families, memory, true);
    return next ? next : most_promising(c, new_families, memory, false);
  }

  bool may_fit(const SpaceSearch& c, const Forecasted& f) const {
    return f.strategy.memory == PlanMemory::kNone
               ? static_cast<double>(f.forecast.memory) * c.hbm_calibration.factor(f.strategy) <=
                     static_cast<double>(hbm_)
               : beyond_hbm(f) * c.pool_calibration.factor(f.strategy) <= static_cast<double>(share_);
  }

  // Mean pool bytes of a device, lower bound.
  double beyond_hbm(const Forecasted& f) const {
    return static_cast<double>(std::max<std::int64_t>(f.forecast.mean - hbm_, 0));
  }

  std::optional<std::size_t> most_promising(const SpaceSearch& c, bool new_families,
                                            std::optional<PlanMemory> memory, bool fits) const {
    std::optional<std::size_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < forecasts_.size(); ++i) {
      const auto& [forecast, strategy, turn] = forecasts_[i];
      if (forecast.time * c.step_calibration.least() >= least) break;
      if (c.tried[i] || turn > c.turn || (memory && strategy.memory != *memory) ||
          !may_lead(c, forecasts_[i]))
        continue;
      if (new_families && c.families.contains(family_of(strategy))) continue;
      if (fits && !may_fit(c, forecasts_[i])) continue;
      const double promised = forecast.time * c.step_calibration.factor(strategy);
      if (c.space != options_.space && forecast.bound >= least_simulated()) continue;
      if (promised < least) best = i, least = promised;
    }
    return best;
  }

  double least_simulated() const {
    return result_.found() ? result_.leaders.front().simulated : std::numeric_limits<double>::infinity();
  }

  bool may_lead(const SpaceSearch& c, const Forecasted& f) const {
    if (!may_be_best(c, f)) return false;
    if (f.strategy.memory == PlanMemory::kNone || !result_.found()) return true;
    const auto leaders = static_cast<std::size_t>(std::max(1, options_.leaders));
    return c.offloaded < (c.resident == 0 ? leaders : std::max<std::size_t>(1, leaders / kOffloadedShare));
  }

  // False if planning transfers is not worth its time: the strategy cannot be the best, or the pool is too
  // small by calibrated forecasts.
  bool may_be_best(const SpaceSearch& c, const Forecasted& f) const {
    if (!can_express(*c.space, f.strategy) || !is_small_enough(f.strategy)) return false;
    if (f.strategy.memory == PlanMemory::kNone) return true;
    return may_fit(c, f) && (!result_.found() || f.forecast.bound < least_simulated());
  }

  void simulate_now(SpaceSearch& c, const std::vector<std::size_t>& indices) {
    std::vector<std::size_t> anew;
    for (const std::size_t i : indices)
      if (!known_.contains(i)) anew.push_back(i);
    std::vector<SimulatedCandidate> some(anew.size());
    parallel_for(some.size(), [&](std::size_t k) { some[k] = tried(forecasts_[anew[k]]); });
    for (std::size_t k = 0; k < some.size(); ++k) {
      known_[anew[k]] = without_plan(some[k]);
      adopt(std::move(some[k]));
    }
    for (const std::size_t i : indices) learn(c, forecasts_[i], known_.at(i));
    sort_leaders();
    tried_ += std::ssize(anew);
    report_tried();
    report_so_far();
  }

  void learn(SpaceSearch& c, const Forecasted& of, const SimulatedCandidate& candidate) const {
    const auto& [forecast, strategy, _] = of;
    if (candidate.simulated > 0 && std::ranges::find(c.simulated, candidate.strategy) == c.simulated.end())
      c.simulated.push_back(candidate.strategy);
    if (candidate.simulated > 0 && !offloads_instead(strategy, candidate.strategy))
      c.step_calibration.learn(strategy, forecast.time, candidate.simulated);
    if (strategy.memory == PlanMemory::kNone && candidate.hbm_before_repair.value > 0)
      c.hbm_calibration.learn(strategy, static_cast<double>(forecast.memory),
                              static_cast<double>(candidate.hbm_before_repair.value));
    if (strategy.memory != PlanMemory::kNone && beyond_hbm(of) > 0 && candidate.pool.value > 0)
      c.pool_calibration.learn(strategy, beyond_hbm(of),
                               static_cast<double>(candidate.pool.value / base_.supernode.devices));
  }

  void adopt(SimulatedCandidate candidate) {
    // A repair can turn two strategies into one.
    const auto is_same = [&](const SimulatedCandidate& other) {
      return other.strategy == candidate.strategy;
    };
    if (std::ranges::any_of(result_.leaders, is_same)) return;
    if (candidate.simulated > 0)
      result_.bounds_hold = result_.bounds_hold && candidate.simulated >= candidate.forecast.bound;
    result_.leaders.push_back(std::move(candidate));
  }

  void sort_leaders() {
    std::ranges::stable_sort(result_.leaders, [](const SimulatedCandidate& a, const SimulatedCandidate& b) {
      return (a.simulated > 0 ? a.simulated : 1e300) < (b.simulated > 0 ? b.simulated : 1e300);
    });
    for (SimulatedCandidate& candidate : result_.leaders | std::views::drop(kKeptPlans))
      candidate.plan.reset();
  }

  SimulatedCandidate tried(const Strategy& strategy, const Forecast& forecast,
                           const Refusals& refusals) const {
    return simulate_or_repair(base_, *options_.space, strategy, forecast, refusals);
  }

  // If a strategy does not fit and nothing else does, tries it with offloading.
  SimulatedCandidate tried(const Forecasted& f) const {
    SimulatedCandidate candidate = tried(f.strategy, f.forecast, refusals());
    const bool may_move =
        f.strategy.memory == PlanMemory::kNone && f.strategy.extra_recompute_layers == 0 && share_ > 0;
    if (candidate.fits || !may_move || result_.found()) return candidate;
    Strategy s = f.strategy;
    s.memory = PlanMemory::kHyperOffload;
    return meets_constraints(s) && is_small_enough(s) ? tried(s, f.forecast, refusals()) : candidate;
  }

  const Job& base_;
  const SearchOptions& options_;
  std::int64_t hbm_, share_;
  std::int64_t most_offloaded_ = options_.space->interleaved
                                     ? std::min(options_.most_offloaded_passes, kFewOffloadedPasses)
                                     : options_.most_offloaded_passes;
  bool plans_long_ = false;
  std::int64_t tried_ = 0, most_simulated_ = 0;  // repeated tries count again
  std::vector<Forecasted> forecasts_;
  std::vector<Forecasted> unlikely_;
  std::map<std::size_t, SimulatedCandidate> known_;  // results by index in forecasts_
  double least_dropped_ = std::numeric_limits<double>::infinity();
  Search result_;
};

}  // namespace

double Search::gap() const {
  if (!bounds_hold || !is_whole) return std::numeric_limits<double>::infinity();
  return found() ? std::max(0.0, leaders.front().simulated / least_bound - 1) : 0;
}

void Search::adopt(SimulatedCandidate candidate) {
  HR_CHECK(candidate.simulated > 0);
  bounds_hold = bounds_hold && candidate.simulated >= least_bound;
  leaders.insert(leaders.begin(), std::move(candidate));
}

Search search(const Job& base, const SearchOptions& options) { return Searcher(base, options).run(); }

}  // namespace hyperrun

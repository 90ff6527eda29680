#include "runtime/plan/search.h"

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
#include "runtime/plan/likeness.h"

namespace hyperrun {
namespace {

constexpr std::size_t kOfMoved = 2;   // and one in so many at most has transfers, once one is found
constexpr std::size_t kTogether = 2;  // leaders that are simulated before the next are chosen
// That are tried beyond that where nothing else fits: as they are, with transfers.
constexpr std::size_t kUnlikely = 16, kUnlikelyMoved = 4;
// Of small jobs, however they are cut: leaders with transfers of each kind beside the others, and passes of
// all of these.
constexpr std::size_t kOfAKind = 4;
constexpr std::int64_t kPassesOfKinds = 8 * kPassesInAMoment;
// Strategies that are compiled, as some are refused: for each leader, but so many in any case.
constexpr std::size_t kTries = 4, kLeastTries = 16;

class Searching {
 public:
  Searching(const Job& base, const SearchOptions& options)
      : base_(base),
        options_(options),
        hbm_(base.supernode.hbm.value),
        share_(pool_share(base, *options.space).value) {}

  Search run() {
    Candidates candidates = candidates_of(base_, options_);
    static_cast<Survey&>(result_) = std::move(candidates.survey);
    forecasts_ = std::move(candidates.forecasts), unlikely_ = std::move(candidates.unlikely);
    least_left_ = candidates.least_left;
    result_.is_whole = false;
    simulate_leaders();
    result_.is_whole = true;
    return std::move(result_);
  }

 private:
  void say(const std::string& what, std::int64_t count) const {
    if (options_.progress) options_.progress(what, count);
  }

  // Those that are refused make room for others, so it is not known how many will be tried.
  void say_tried() const {
    const auto simulated =
        std::ranges::count_if(result_.leaders, [](const Leader& l) { return l.simulated > 0; });
    say("leaders tried, " + std::to_string(simulated) + " of up to " + std::to_string(most_simulated_) +
            " simulated",
        tried_);
  }

  void tell_so_far() const {
    if (options_.so_far) options_.so_far(result_);
  }

  bool is_meant(const Strategy& s) const { return meets(options_.space->only, s); }

  bool can_be_tried(const Strategy& s) const { return can_be_simulated(base_, s, most_moved_); }

  // Of a space: what was chosen to be simulated, and what it taught.
  struct Choice {
    const Space* space;
    std::vector<bool> tried;                               // of forecasts_
    std::set<Family> families = {};                        // of those
    Corrections corrections = {}, room = {}, beyond = {};  // of time, of HBM, of what lies beyond HBM
    std::size_t moved = 0, unmoved = 0;                    // `moved`: were tried with transfers
    std::size_t turn = 0;
    std::vector<Strategy> simulated = {};  // each once: two become one with more layers that recompute more
  };

  // Strategies of a family are near each other: first the most promising of every family, then of all.
  void simulate_leaders() {
    const std::vector<const Space*> spaces = options_.chosen_from();
    most_simulated_ = std::ssize(spaces) * std::max(1, options_.leaders);
    say_tried();
    choose(*spaces.front());
    if (!result_.found()) choose_larger(*spaces.front());
    if (!result_.found()) simulate_the_modest();
    if (!result_.found() && options_.unlikely) simulate_the_unlikely();
    for (const Space* restricted : spaces | std::views::drop(1)) choose(*restricted);
    for (std::size_t i = 0; i < forecasts_.size(); ++i)
      if (!is_settled(i)) least_left_ = std::min(least_left_, bound_left(forecasts_[i], base_.supernode.hbm));
    result_.least_bound = least_left_;
  }

  // Of what placing refuses others may fit that were not tried: with other numbers of layers that recompute
  // more, or with transfers. Those with fewer layers than were asked for are left out as they are forecast.
  bool is_settled(std::size_t i) const {
    const auto known = known_.find(i);
    if (known == known_.end()) return false;
    const Strategy &asked = forecasts_[i].strategy, &is = known->second.strategy;
    if (moves_instead(asked, is) || is.deeper > asked.deeper) return false;
    return known->second.simulated > 0 || known->second.fits;
  }

  // It did not fit as it was asked. What asked for a policy and had nothing to move has none, and is the
  // same.
  static bool moves_instead(const Strategy& asked, const Strategy& is) {
    return asked.memory == PlanMemory::kNone && is.memory != PlanMemory::kNone;
  }

  void choose(const Space& space) {
    Choice c{&space, std::vector<bool>(forecasts_.size())};
    choose(c);
    if (options_.leaders > 1 && options_.of_each_kind) choose_of_each_kind(c);
  }

  // Forecasts of transfers err by what ZeRO gathers and by what is recomputed, of small tensors by half and
  // more: all leaders may be of kinds whose forecasts promise too much, or none may move tensors as these
  // promise too little.
  void choose_of_each_kind(Choice& c) {
    if (std::int64_t{base_.model.layers} * base_.training.batch > kPassesOfKinds || !result_.found()) return;
    std::map<std::pair<std::int32_t, PlanRecompute>, std::size_t> of_kind;
    std::array<std::vector<std::size_t>, kOfAKind> ranks;  // the first of every kind, the second ones, ...
    for (std::size_t i = 0; i < forecasts_.size(); ++i) {
      const Strategy& s = forecasts_[i].strategy;
      if (c.families.contains(family_of(s)) || !moves_in_a_moment(c, forecasts_[i])) continue;
      if (std::size_t& rank = of_kind[{s.zero, s.recompute}]; rank < kOfAKind) {
        ranks[rank++].push_back(i);
        c.families.insert(family_of(s));
      }
    }
    std::int64_t passes = 0;
    std::vector<std::size_t> some;
    for (const std::size_t i : std::views::join(ranks))
      if (const std::int64_t own = passes_of(base_, forecasts_[i].strategy); passes + own <= kPassesOfKinds)
        passes += own, some.push_back(i);
    most_simulated_ += std::ssize(some) + std::int64_t{kLeadersOfATurn};
    for (const std::size_t i : some) take(c, i);
    simulate_now(c, some);
    if (!some.empty()) simulate(c, c.simulated.size() + kLeadersOfATurn, false);
  }

  bool moves_in_a_moment(const Choice& c, const Forecasted& f) const {
    return f.strategy.memory != PlanMemory::kNone && may_be_best(c, f) &&
           passes_of(base_, f.strategy) <= kPassesInAMoment;
  }

  // Of what fits with transfers alone: what has more passes, and what was refused as planning it takes long.
  void choose_larger(const Space& space) {
    most_moved_ = options_.most_moved_passes;
    if (refusals() != options_.refusals) forget_refused();
    plans_long_ = true;
    Choice c{&space, std::vector<bool>(forecasts_.size())};
    for (const auto& [i, _] : known_) c.tried[i] = true;
    choose(c);
  }

  // With transfers that were not planned: there is no HBM that they take.
  void forget_refused() {
    const auto was_refused = [](const Leader& l) {
      return l.strategy.memory != PlanMemory::kNone && !l.fits && l.hbm.value == 0;
    };
    std::erase_if(known_, [&](const auto& k) { return was_refused(k.second); });
    std::erase_if(result_.leaders, was_refused);
  }

  // Planning transfers of long steps takes many minutes: where anything else fits it is left.
  Refusals refusals() const {
    Refusals refusals = options_.refusals;
    const bool leaves_long = !plans_long_ || result_.found();
    if (!refusals.hopeless && leaves_long) refusals.longest = options_.long_step;
    return refusals;
  }

  void choose(Choice& c) {
    // In turns, so that more leaders begin as fewer do: the last of each may be of a family that has one.
    const auto all = static_cast<std::size_t>(options_.leaders);
    std::size_t last_turn = 0;
    for (const Forecasted& f : forecasts_) last_turn = std::max(last_turn, f.turn);
    for (std::size_t until = kLeadersOfATurn; until < all + kLeadersOfATurn; until += kLeadersOfATurn) {
      const std::size_t tried = c.moved + c.unmoved;
      simulate(c, std::min(all, until - 1), true);
      simulate(c, std::min(all, until), false);
      if (c.moved + c.unmoved == tried && c.turn >= last_turn) break;
      ++c.turn;
    }
  }

  // That none of the fastest fits does not say that none does.
  void simulate_the_modest() {
    std::vector<Leader> some(result_.modest.size());
    say("that take least are tried", std::ssize(some));
    parallel_for(some.size(), [&](std::size_t i) {
      const Needs& needs = result_.modest[i];
      if (needs.least.value <= hbm_)
        some[i] = tried_as_meant(needs.strategy, {.bound = needs.bound, .bound_of_more = needs.of_more},
                                 options_.refusals);
    });
    adopt_where_found(std::move(some));
  }

  // Forecasts of small tensors are too high, as gaps between them are; and of what no policy moves. What is
  // likely and made no leader is among them.
  void simulate_the_unlikely() {
    for (std::size_t i = 0; i < forecasts_.size(); ++i)
      if (!known_.contains(i)) unlikely_.push_back(forecasts_[i]);
    const auto moves = [](const Forecasted& f) { return f.strategy.memory != PlanMemory::kNone; };
    std::erase_if(unlikely_, [&](const Forecasted& f) {
      return !can_be_simulated(base_, f.strategy, std::min(options_.most_moved_passes, kFewMovedPasses));
    });
    std::ranges::stable_sort(unlikely_, {}, [&](const Forecasted& f) {
      return std::pair(moves(f) ? overfull(f.forecast, hbm_, share_) : 0.0, f.forecast.memory);
    });
    std::vector<Forecasted> list;
    for (const bool moved : {false, true}) {
      const std::size_t most = list.size() + (moved ? kUnlikelyMoved : kUnlikely);
      for (const Forecasted& f : unlikely_)
        if (moves(f) == moved && list.size() < most) list.push_back(f);
    }
    std::vector<Leader> some(list.size());
    say("that hardly fit are tried", std::ssize(list));
    parallel_for(some.size(), [&](std::size_t i) {
      some[i] = tried_as_meant(list[i].strategy, list[i].forecast, {.hopeless = true});
    });
    std::erase_if(some, [](const Leader& l) { return l.hbm.value == 0; });  // hopeless
    adopt_where_found(std::move(some));
  }

  // In the first order of its axes that is wanted, if there is one.
  Leader tried_as_meant(const Strategy& strategy, const Forecast& forecast, const Refusals& refusals) const {
    if (is_meant(strategy)) return tried(strategy, forecast, refusals);
    for (const Strategy& s : orders_of(strategy))
      if (is_meant(s)) return tried(s, forecast, refusals);
    return {};
  }

  // Where none does, what was refused says what is missing.
  void adopt_where_found(std::vector<Leader> some) {
    const bool found = std::ranges::any_of(some, [](const Leader& l) { return l.simulated > 0; });
    for (Leader& leader : some)
      if (found ? leader.simulated > 0 : !leader.fits) adopt(std::move(leader));
    sort_leaders();
    tell_so_far();
  }

  // Until so many leaders are simulated, some at once; those that are refused make room for the next.
  void simulate(Choice& c, std::size_t most, bool new_families) {
    const std::size_t tries = std::max(kTries * most, kLeastTries);
    while (c.simulated.size() < most && c.moved + c.unmoved < tries) {
      std::vector<std::size_t> now;
      for (std::size_t room = std::min(kTogether, most - c.simulated.size()); room > 0; --room)
        if (const auto next = next_leader(c, new_families)) take(c, *next), now.push_back(*next);
      if (now.empty()) return;
      simulate_now(c, now);
    }
  }

  void take(Choice& c, std::size_t i) const {
    const Strategy& s = forecasts_[i].strategy;
    c.tried[i] = true;
    c.families.insert(family_of(s));
    (s.memory == PlanMemory::kNone ? c.unmoved : c.moved) += 1;
  }

  // Those without and with transfers have one each before anything is known of either.
  std::optional<std::size_t> next_leader(const Choice& c, bool new_families) const {
    std::optional<std::size_t> next;
    if (c.unmoved == 0) next = most_promising(c, new_families, PlanMemory::kNone);
    if (!next && c.moved == 0) next = most_promising(c, new_families, PlanMemory::kHyperOffload);
    return next ? next : most_promising(c, new_families, std::nullopt);
  }

  // By its forecast, corrected by what was simulated of its like. What would not fit by what was placed of
  // its like comes when there is nothing else.
  std::optional<std::size_t> most_promising(const Choice& c, bool new_families,
                                            std::optional<PlanMemory> memory) const {
    const auto next = most_promising(c, new_families, memory, true);
    return next ? next : most_promising(c, new_families, memory, false);
  }

  bool may_fit(const Choice& c, const Forecasted& f) const {
    return f.strategy.memory == PlanMemory::kNone
               ? static_cast<double>(f.forecast.memory) * c.room.factor(f.strategy) <=
                     static_cast<double>(hbm_)
               : beyond_hbm(f) * c.beyond.factor(f.strategy) <= static_cast<double>(share_);
  }

  // Bytes that the pool takes at least, of all devices on average. It takes more where what is used again
  // soon has no room to stay.
  double beyond_hbm(const Forecasted& f) const {
    return static_cast<double>(std::max<std::int64_t>(f.forecast.mean - hbm_, 0));
  }

  std::optional<std::size_t> most_promising(const Choice& c, bool new_families,
                                            std::optional<PlanMemory> memory, bool fits) const {
    std::optional<std::size_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < forecasts_.size(); ++i) {
      const auto& [forecast, strategy, turn] = forecasts_[i];
      if (forecast.time * c.corrections.least() >= least) break;
      if (c.tried[i] || turn > c.turn || (memory && strategy.memory != *memory) ||
          !may_lead(c, forecasts_[i]))
        continue;
      if (new_families && c.families.contains(family_of(strategy))) continue;
      if (fits && !may_fit(c, forecasts_[i])) continue;
      const double promised = forecast.time * c.corrections.factor(strategy);
      if (c.space != options_.space && forecast.bound >= least_simulated()) continue;
      if (promised < least) best = i, least = promised;
    }
    return best;
  }

  double least_simulated() const {
    return result_.found() ? result_.leaders.front().simulated : std::numeric_limits<double>::infinity();
  }

  bool may_lead(const Choice& c, const Forecasted& f) const {
    if (!may_be_best(c, f)) return false;
    if (f.strategy.memory == PlanMemory::kNone || !result_.found()) return true;
    const auto leaders = static_cast<std::size_t>(std::max(1, options_.leaders));
    return c.moved < (c.unmoved == 0 ? leaders : std::max<std::size_t>(1, leaders / kOfMoved));
  }

  // To plan transfers takes long: where that cannot give the best, or the pool is too small by what was
  // placed there of its like, it is left.
  bool may_be_best(const Choice& c, const Forecasted& f) const {
    if (!can_express(*c.space, f.strategy) || !can_be_tried(f.strategy)) return false;
    if (f.strategy.memory == PlanMemory::kNone) return true;
    return may_fit(c, f) && (!result_.found() || f.forecast.bound < least_simulated());
  }

  void simulate_now(Choice& c, const std::vector<std::size_t>& indices) {
    std::vector<std::size_t> anew;
    for (const std::size_t i : indices)
      if (!known_.contains(i)) anew.push_back(i);
    std::vector<Leader> some(anew.size());
    parallel_for(some.size(), [&](std::size_t k) { some[k] = tried(forecasts_[anew[k]]); });
    for (std::size_t k = 0; k < some.size(); ++k) {
      known_[anew[k]] = without_plan(some[k]);
      adopt(std::move(some[k]));
    }
    for (const std::size_t i : indices) learn(c, forecasts_[i], known_.at(i));
    sort_leaders();
    tried_ += std::ssize(anew);
    say_tried();
    tell_so_far();
  }

  void learn(Choice& c, const Forecasted& of, const Leader& leader) const {
    const auto& [forecast, strategy, _] = of;
    if (leader.simulated > 0 && std::ranges::find(c.simulated, leader.strategy) == c.simulated.end())
      c.simulated.push_back(leader.strategy);
    if (leader.simulated > 0 && !moves_instead(strategy, leader.strategy))
      c.corrections.learn(strategy, forecast.time, leader.simulated);
    if (strategy.memory == PlanMemory::kNone && leader.hbm_as_asked.value > 0)
      c.room.learn(strategy, static_cast<double>(forecast.memory),
                   static_cast<double>(leader.hbm_as_asked.value));
    if (strategy.memory != PlanMemory::kNone && beyond_hbm(of) > 0 && leader.pool.value > 0)
      c.beyond.learn(strategy, beyond_hbm(of),
                     static_cast<double>(leader.pool.value / base_.supernode.devices));
  }

  void adopt(Leader leader) {
    // What two have become with more layers that recompute more, or fewer.
    const auto is_same = [&](const Leader& other) { return other.strategy == leader.strategy; };
    if (std::ranges::any_of(result_.leaders, is_same)) return;
    if (leader.simulated > 0)
      result_.bounds_hold = result_.bounds_hold && leader.simulated >= leader.forecast.bound;
    result_.leaders.push_back(std::move(leader));
  }

  void sort_leaders() {
    std::ranges::stable_sort(result_.leaders, [](const Leader& a, const Leader& b) {
      return (a.simulated > 0 ? a.simulated : 1e300) < (b.simulated > 0 ? b.simulated : 1e300);
    });
    for (Leader& leader : result_.leaders | std::views::drop(kKeptPlans)) leader.plan.reset();
  }

  Leader tried(const Strategy& strategy, const Forecast& forecast, const Refusals& refusals) const {
    return try_near(base_, *options_.space, strategy, forecast, refusals);
  }

  // What does not fit as it is may with the pool, if nothing else does.
  Leader tried(const Forecasted& f) const {
    Leader leader = tried(f.strategy, f.forecast, refusals());
    const bool may_move = f.strategy.memory == PlanMemory::kNone && f.strategy.deeper == 0 && share_ > 0;
    if (leader.fits || !may_move || result_.found()) return leader;
    Strategy s = f.strategy;
    s.memory = PlanMemory::kHyperOffload;
    return is_meant(s) && can_be_tried(s) ? tried(s, f.forecast, refusals()) : leader;
  }

  const Job& base_;
  const SearchOptions& options_;
  std::int64_t hbm_, share_;
  std::int64_t most_moved_ = options_.space->interleaved
                                 ? std::min(options_.most_moved_passes, kFewMovedPasses)
                                 : options_.most_moved_passes;
  bool plans_long_ = false;
  std::int64_t tried_ = 0, most_simulated_ = 0;  // also those that are tried again
  std::vector<Forecasted> forecasts_;
  std::vector<Forecasted> unlikely_;
  std::map<std::size_t, Leader> known_;  // what has become of forecasts_
  double least_left_ = std::numeric_limits<double>::infinity();
  Search result_;
};

}  // namespace

double Search::gap() const {
  if (!bounds_hold || !is_whole) return std::numeric_limits<double>::infinity();
  return found() ? std::max(0.0, leaders.front().simulated / least_bound - 1) : 0;
}

void Search::adopt(Leader leader) {
  HR_CHECK(leader.simulated > 0);
  bounds_hold = bounds_hold && leader.simulated >= least_bound;
  leaders.insert(leaders.begin(), std::move(leader));
}

Search search(const Job& base, const SearchOptions& options) { return Searching(base, options).run(); }

}  // namespace hyperrun

#include "runtime/plan/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/plan/bounding.h"
#include "runtime/plan/likeness.h"
#include "runtime/plan/transfers.h"
#include "runtime/sim/job_forecast.h"

namespace hyperrun {
namespace {

constexpr std::size_t kInAllOrders = 4;  // of the best forecasts, for each leader
constexpr std::size_t kAnyFamily = 4;    // a leader in so many may be of a family that has one
constexpr std::size_t kOfMoved = 2;      // and one in so many at most has transfers, once one is found
constexpr std::int64_t kNews = 4096;     // forecasts between two words of progress
constexpr double kDoubt = 1.06;          // of HBM, that a forecast may take and yet be tried
constexpr std::size_t kTogether = 2;     // leaders that are simulated before the next are chosen
constexpr std::size_t kUnlikely = 16;    // that are tried beyond that where nothing else fits
constexpr int kFewerLayers = 3;          // that a leader recomputes less where its forecast took too many
constexpr int kMoreTries = 4;            // of more layers where it took too few
// Strategies that are compiled, as some are refused: for each leader, but so many in any case.
constexpr std::size_t kTries = 4, kLeastTries = 16;

bool sooner(const Forecasted& a, const Forecasted& b) { return a.forecast.time < b.forecast.time; }

class Searching {
 public:
  Searching(const Job& base, const SearchOptions& options)
      : base_(base),
        options_(options),
        hbm_(base.supernode.hbm.value),
        share_(pool_share(base, *options.space).value),
        forecasting_(std::make_unique<Forecasting>(base, *options.space, &probes_)) {}

  Search run() {
    bound_them();
    forecast_some();
    reorder_the_best();
    forecasting_.reset();
    simulate_leaders();
    return std::move(result_);
  }

 private:
  void say(const std::string& what, std::int64_t count) const {
    if (options_.progress) options_.progress(what, count);
  }

  // --- bounds -------------------------------------------------------------------------------------

  void bound_them() {
    Bounds all = bound_all(
        base_, *options_.space, shapes_of(base_, *options_.space),
        [&](std::int64_t looked_at) { say("strategies bounded", looked_at); }, &probes_);
    std::ranges::sort(all.kept, lower);
    kept_ = std::move(all.kept);
    left_out(all.least_left);
    result_.strategies = all.strategies, result_.do_not_divide = all.do_not_divide;
    result_.do_not_fit = all.do_not_fit, result_.bounded = all.bounded;
    result_.alternatives = std::move(all.alternatives);
    result_.modest = std::move(all.modest);
  }

  void left_out(double bound) { least_left_ = std::min(least_left_, bound); }

  // With more layers that recompute more as well, but of what has another forecast with these, as it does not
  // fit by its own.
  void leave(const Forecast& f, const Strategy& s) {
    left_out(s.deeper == 0 && f.memory > hbm_ ? f.bound : f.bound_of_more);
  }

  // --- forecasts ----------------------------------------------------------------------------------

  Forecast placed(const Forecast& f, const Strategy& s) const {
    if (s.memory == PlanMemory::kNone) return f;
    return with_transfers(f, Tier::kPool, forecasting_->machine(), Bytes(hbm_));
  }

  // What is forecast does not depend on the order in which threads come to it: those that are not wanted at
  // the end go.
  void forecast_some() {
    std::priority_queue<double> best;  // forecasts of those that fit, as many as there are leaders
    std::vector<Left> left(kept_.size());
    std::vector<std::pair<std::size_t, Forecasts>> found;
    std::int64_t told = 0;
    forecasting_->each(kept_, [&](std::size_t i, Forecasts&& all) {
      left[i] = {all.bound_of_more, all.bound_as_it_is};
      for (const auto& f : {all.as_it_is, all.deeper})
        if (f && fits(*f)) keep_best(best, f->forecast.time);
      if (all.as_it_is || all.deeper) found.emplace_back(i, std::move(all));
      if (std::ssize(found) - told >= kNews) say("strategies forecast", told = std::ssize(found));
      return enough(best);
    });
    std::ranges::sort(found, {}, &std::pair<std::size_t, Forecasts>::first);
    leave(left, enough(best));
    take_wanted(found, enough(best));
    sort_forecasts();
  }

  std::size_t leaders() const { return static_cast<std::size_t>(std::max(1, options_.leaders)); }

  void keep_best(std::priority_queue<double>& best, double time) const {
    best.push(time);
    if (best.size() > leaders()) best.pop();
  }

  double enough(const std::priority_queue<double>& best) const {
    return best.size() < leaders() ? std::numeric_limits<double>::infinity() : best.top();
  }

  // Bounds of a strategy of kept_, ns: with any number of layers that recompute more in any order of axes,
  // and as it is. 0: nobody asked for them.
  struct Left {
    double bound_of_more = 0, bound_as_it_is = 0;
  };

  void leave(const std::vector<Left>& all, double enough) {
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (kept_[i].bound > enough)
        left_out(kept_[i].of_more);
      else if (all[i].bound_as_it_is > enough)
        left_out(all[i].bound_of_more);
  }

  void take_wanted(const std::vector<std::pair<std::size_t, Forecasts>>& found, double enough) {
    for (const auto& [i, all] : found) {
      if (all.bound_as_it_is > enough) continue;
      if (all.fewer_may_fit) left_out(all.deeper->forecast.bound_of_more);
      for (const auto& f : {all.as_it_is, all.deeper}) {
        if (!f) continue;
        ++result_.forecast;
        consider(f->forecast, f->strategy);
      }
    }
  }

  void sort_forecasts() { std::ranges::stable_sort(forecasts_, sooner); }

  // Without the pool.
  bool fits(const Forecasted& f) const {
    return f.forecast.memory <= hbm_ && meets(options_.space->only, f.strategy, Settled::kForecast);
  }

  void consider(const Forecast& f, Strategy s) {
    const bool fits = f.memory <= hbm_;
    const auto doubtful = static_cast<std::int64_t>(kDoubt * static_cast<double>(hbm_));
    const bool too_much_stays =
        f.memory > doubtful && kDoubt * static_cast<double>(f.here) > static_cast<double>(hbm_);
    if (too_much_stays ||
        f.memory > std::max(doubtful, hbm_ + share_)) {  // unlikely to fit, and its bound stands
      if (f.least_memory <= hbm_) unlikely_.push_back({f, s});
      leave(f, s);
      return;
    }
    if (!fits && s.deeper > 0 && f.memory > doubtful) {  // it recomputes more, or moves: not both
      if (f.least_memory <= hbm_) unlikely_.push_back({f, s});
      leave(f, s);
      return;
    }
    if (!fits && share_ > 0 && s.deeper == 0) {
      s.memory = PlanMemory::kHyperOffload;
      if (f.least_memory <= hbm_) leave(f, s);  // it may fit without
    }
    if (!meets(options_.space->only, s, Settled::kForecast)) {  // when it is placed it may
      leave(f, s);
      return;
    }
    forecasts_.push_back({placed(f, s), s});
    result_.alternatives.count_forecast(s, forecasts_.back().forecast);
  }

  bool is_meant(const Strategy& s) const { return meets(options_.space->only, s); }

  // The others may be faster in another order than theirs.
  void reorder_the_best() {
    const std::size_t all = forecasts_.size();
    const std::size_t best = std::min(all, kInAllOrders * static_cast<std::size_t>(options_.leaders));
    for (std::size_t i = best; i < all; ++i)
      if (mesh_of(forecasts_[i].strategy).size() > 1) leave(forecasts_[i].forecast, forecasts_[i].strategy);
    for (std::size_t i = 0; i < best; ++i) reorder(Forecasted(forecasts_[i]));
    std::erase_if(forecasts_, [&](const Forecasted& f) { return !is_meant(f.strategy); });
    sort_forecasts();
    const auto large = std::ranges::find_if(
        forecasts_, [&](const Forecasted& f) { return !can_be_simulated(base_, f.strategy); });
    if (large != forecasts_.end()) result_.too_large = *large;
  }

  // Where the groups lie as they did, nothing is different.
  void reorder(const Forecasted& first) {
    std::vector<std::pair<const Pieces*, double>> known;
    if (is_meant(first.strategy)) known.push_back(forecasting_->lies(first.strategy));
    for (const Strategy& s : orders_of(first.strategy)) {
      if (!is_meant(s)) continue;
      const auto here = forecasting_->lies(s);
      if (here.first == nullptr || std::ranges::any_of(known, [&](const auto& other) {
            return here.second == other.second && *here.first == *other.first;
          }))
        continue;
      known.push_back(here);
      Forecast f = *forecasting_->forecast_of(s);
      f.bound = std::max(f.bound, first.forecast.bound);
      f.bound_of_more = first.forecast.bound_of_more;
      forecasts_.push_back({placed(f, s), s});
      result_.alternatives.count_forecast(s, forecasts_.back().forecast);
    }
  }

  // --- simulations --------------------------------------------------------------------------------

  // Of a space: what was chosen to be simulated, and what it taught.
  struct Choice {
    const Space* space;
    std::vector<bool> tried;                               // of forecasts_
    std::set<Family> families = {};                        // of those
    Corrections corrections = {}, room = {}, beyond = {};  // of time, of HBM, of what lies beyond HBM
    std::size_t moved = 0, unmoved = 0;                    // `moved`: were tried with transfers
    std::vector<Strategy> simulated = {};  // each once: two become one with more layers that recompute more
  };

  // Strategies of a family are near each other: first the most promising of every family, then of all.
  void simulate_leaders() {
    say("leaders simulated", 0);
    choose(*options_.space);
    if (!result_.found()) simulate_the_modest();
    if (!result_.found()) simulate_the_unlikely();
    if (options_.leaders > 1) choose_of_restricted();
    for (std::size_t i = 0; i < forecasts_.size(); ++i)
      if (!is_settled(i)) leave(forecasts_[i].forecast, forecasts_[i].strategy);
    result_.least_bound = least_left_;
  }

  // Of what placing refuses others may fit that were not tried: with other numbers of layers that recompute
  // more, or with transfers. Those with fewer layers than were asked for are left out as they are forecast.
  bool is_settled(std::size_t i) const {
    const auto known = known_.find(i);
    if (known == known_.end()) return false;
    const Strategy &asked = forecasts_[i].strategy, &is = known->second.strategy;
    if (is.memory != asked.memory || is.deeper > asked.deeper) return false;
    return known->second.simulated > 0 || known->second.fits;
  }

  void choose(const Space& space) {
    Choice c{&space, std::vector<bool>(forecasts_.size())};
    const auto all = static_cast<std::size_t>(options_.leaders);
    simulate(c, all - all / kAnyFamily, true);
    simulate(c, all, false);
  }

  // What forecasts say of a space is decided among fewer there: each restricted one has leaders of its own,
  // as far as they promise to be faster, so that the wider space does not miss what it finds.
  void choose_of_restricted() {
    for (const Space& space : spaces())
      if (&space != &spaces().front() && options_.space->name == spaces().front().name) choose(space);
  }

  // That none of the fastest fits does not say that none does.
  void simulate_the_modest() {
    std::vector<Leader> some(result_.modest.size());
    parallel_for(some.size(), [&](std::size_t i) {
      const Needs& needs = result_.modest[i];
      if (needs.memory.value <= hbm_) some[i] = tried_as_meant(needs.strategy, {});
    });
    adopt_simulated(std::move(some));
  }

  // Forecasts of small tensors are too high, as gaps between them are.
  void simulate_the_unlikely() {
    std::ranges::stable_sort(unlikely_, {}, [](const Forecasted& f) { return f.forecast.memory; });
    std::vector<Leader> some(std::min(unlikely_.size(), kUnlikely));
    parallel_for(some.size(), [&](std::size_t i) {
      some[i] = tried_as_meant(unlikely_[i].strategy, unlikely_[i].forecast);
    });
    adopt_simulated(std::move(some));
  }

  // In the first order of its axes that is wanted, if there is one.
  Leader tried_as_meant(const Strategy& strategy, const Forecast& forecast) const {
    if (is_meant(strategy)) return try_near(base_, *options_.space, strategy, forecast);
    for (const Strategy& s : orders_of(strategy))
      if (is_meant(s)) return try_near(base_, *options_.space, s, forecast);
    return {};
  }

  void adopt_simulated(std::vector<Leader> some) {
    for (Leader& leader : some)
      if (leader.simulated > 0) adopt(std::move(leader));
    sort_leaders();
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

  // Bytes of a device that the pool takes at least. It takes more where what is used again soon has no room
  // to stay.
  double beyond_hbm(const Forecasted& f) const {
    return static_cast<double>(std::max<std::int64_t>(f.forecast.memory - hbm_, 0));
  }

  std::optional<std::size_t> most_promising(const Choice& c, bool new_families,
                                            std::optional<PlanMemory> memory, bool fits) const {
    std::optional<std::size_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < forecasts_.size(); ++i) {
      const auto& [forecast, strategy] = forecasts_[i];
      if (forecast.time * c.corrections.least() >= least) break;
      if (c.tried[i] || (memory && strategy.memory != *memory) || !may_lead(c, forecasts_[i])) continue;
      if (new_families && c.families.contains(family_of(strategy))) continue;
      if (fits && !may_fit(c, forecasts_[i])) continue;
      const double promised = forecast.time * c.corrections.factor(strategy);
      if (c.space != options_.space && promised >= least_simulated()) continue;
      if (promised < least) best = i, least = promised;
    }
    return best;
  }

  double least_simulated() const {
    return result_.found() ? result_.leaders.front().simulated : std::numeric_limits<double>::infinity();
  }

  // To plan transfers takes long: where that cannot give the best, or the pool is too small by what was
  // placed there of its like, it is left.
  bool may_lead(const Choice& c, const Forecasted& f) const {
    if (!can_express(*c.space, f.strategy) || !can_be_simulated(base_, f.strategy)) return false;
    if (f.strategy.memory == PlanMemory::kNone) return true;
    if (!may_fit(c, f)) return false;
    if (!result_.found()) return true;
    const auto leaders = static_cast<std::size_t>(std::max(1, options_.leaders));
    const std::size_t most = c.unmoved == 0 ? leaders : std::max<std::size_t>(1, leaders / kOfMoved);
    return c.moved < most && f.forecast.bound < least_simulated();
  }

  void simulate_now(Choice& c, const std::vector<std::size_t>& indices) {
    std::vector<std::size_t> anew;
    for (const std::size_t i : indices)
      if (!known_.contains(i)) anew.push_back(i);
    std::vector<Leader> some(anew.size());
    parallel_for(some.size(), [&](std::size_t k) { some[k] = tried(forecasts_[anew[k]]); });
    for (std::size_t k = 0; k < some.size(); ++k) {
      known_[anew[k]] = some[k];
      adopt(std::move(some[k]));
    }
    for (const std::size_t i : indices) learn(c, forecasts_[i], known_.at(i));
    sort_leaders();
    say("leaders simulated", static_cast<std::int64_t>(simulated_));
  }

  void learn(Choice& c, const Forecasted& of, const Leader& leader) const {
    const auto& [forecast, strategy] = of;
    if (leader.simulated > 0 && std::ranges::find(c.simulated, leader.strategy) == c.simulated.end())
      c.simulated.push_back(leader.strategy);
    if (leader.simulated > 0 && leader.strategy.memory == strategy.memory)
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
    if (leader.simulated > 0) {
      ++simulated_;
      result_.bounds_hold = result_.bounds_hold && leader.simulated >= leader.forecast.bound;
    }
    result_.leaders.push_back(std::move(leader));
  }

  void sort_leaders() {
    std::ranges::stable_sort(result_.leaders, [](const Leader& a, const Leader& b) {
      return (a.simulated > 0 ? a.simulated : 1e300) < (b.simulated > 0 ? b.simulated : 1e300);
    });
  }

  // What does not fit as it is may with the pool, if nothing else does.
  Leader tried(const Forecasted& f) const {
    Leader leader = try_near(base_, *options_.space, f.strategy, f.forecast);
    const bool may_move = f.strategy.memory == PlanMemory::kNone && f.strategy.deeper == 0 && share_ > 0;
    if (leader.fits || !may_move || result_.found()) return leader;
    Strategy s = f.strategy;
    s.memory = PlanMemory::kHyperOffload;
    return is_meant(s) ? try_strategy(base_, s, f.forecast) : leader;
  }

  const Job& base_;
  const SearchOptions& options_;
  std::int64_t hbm_, share_;
  SharedProbes probes_;
  std::unique_ptr<Forecasting> forecasting_;
  std::vector<Bounded> kept_;
  std::vector<Forecasted> forecasts_;
  std::vector<Forecasted> unlikely_;     // by their forecasts they do not fit, by their bounds they may
  std::map<std::size_t, Leader> known_;  // what has become of forecasts_
  std::size_t simulated_ = 0;
  double least_left_ = std::numeric_limits<double>::infinity();
  Search result_;
};

}  // namespace

double Search::gap() const {
  if (!bounds_hold) return std::numeric_limits<double>::infinity();
  return found() ? std::max(0.0, leaders.front().simulated / least_bound - 1) : 0;
}

void Search::adopt(Leader leader) {
  HR_CHECK(leader.simulated > 0);
  bounds_hold = bounds_hold && leader.simulated >= least_bound;
  leaders.insert(leaders.begin(), std::move(leader));
}

Search search(const Job& base, const SearchOptions& options) { return Searching(base, options).run(); }

namespace {

// Its forecast may have taken too much for what it needs.
Leader with_fewer_deeper(const Job& base, Leader leader) {
  for (int fewer = 0; fewer < kFewerLayers && leader.strategy.deeper > 1; ++fewer) {
    Strategy s = leader.strategy;
    --s.deeper;
    Leader next = try_strategy(base, s, leader.forecast);
    if (next.simulated == 0 || next.simulated > leader.simulated) break;
    next.forecast.bound = next.forecast.bound_of_more;
    leader = std::move(next);
  }
  return leader;
}

// Placing leaves gaps that no forecast knows: one layer more says how much a layer saves, then as many as
// should do.
Leader with_more_deeper(const Job& base, const Space& space, Leader leader) {
  std::int32_t step = 1;
  for (int tries = 0; tries < kMoreTries && !leader.fits && next_after(leader.strategy.recompute); ++tries) {
    Strategy s = leader.strategy;
    const std::int32_t most = most_layers(s, base.model.layers) - 1;
    if (s.deeper >= most) break;
    step = std::min(step, most - s.deeper);
    s.deeper += step;
    if (!meets(space.only, s)) break;
    Leader next = try_strategy(base, s, leader.forecast);
    next.forecast.bound = next.forecast.bound_of_more;
    if (next.hbm.value == 0) break;  // the compiler refuses it
    const double saved = static_cast<double>((leader.hbm - next.hbm).value) / step;
    const auto missing = static_cast<double>((next.hbm - base.supernode.hbm).value);
    step = saved > 0 ? static_cast<std::int32_t>(
                           std::clamp(std::ceil(missing / saved), 1.0, static_cast<double>(most)))
                     : 2 * step;
    leader = std::move(next);
  }
  return leader;
}

}  // namespace

Leader try_near(const Job& base, const Space& space, const Strategy& strategy, const Forecast& forecast) {
  Leader leader = try_strategy(base, strategy, forecast);
  const Bytes as_asked = leader.hbm;
  if (leader.simulated > 0 && strategy.deeper > 0) {
    leader = with_fewer_deeper(base, std::move(leader));
  } else if (!leader.fits && strategy.memory == PlanMemory::kNone) {
    leader = with_more_deeper(base, space, std::move(leader));
  }
  leader.hbm_as_asked = as_asked;
  return leader;
}

bool can_be_simulated(const Job& base, const Strategy& strategy) {
  const std::int64_t passes = std::int64_t{base.model.layers} * micro_batches(strategy, base.training.batch);
  return passes <= (strategy.memory == PlanMemory::kNone ? kMostPasses : kMostMovedPasses);
}

Leader try_strategy(const Job& base, const Strategy& strategy, const Forecast& forecast) try {
  if (!can_be_simulated(base, strategy)) {
    Leader leader{.strategy = strategy, .forecast = forecast};
    leader.micro_batches = micro_batches(strategy, base.training.batch);
    leader.why_not = "its step is too large to be simulated: " + std::to_string(leader.micro_batches) +
                     " micro-batches through " + std::to_string(base.model.layers) + " layers";
    return leader;
  }
  Leader leader = try_job(job_of(base, strategy));
  leader.strategy = strategy, leader.forecast = forecast;
  return leader;
} catch (const Error& e) {
  throw Error(e.code(), e.cause() + ", of the strategy " + words(strategy)).at(e.place()).fix(e.remedy());
}

Leader try_job(const Job& job) {
  Leader leader;
  leader.micro_batches = job.training.micro_batches;
  try {
    const Compiled compiled = compile(job);
    leader.hbm = leader.hbm_as_asked = compiled.plan.peak();
    leader.pool = compiled.plan.of_all_devices(Tier::kPool);
    check_fits(compiled.plan, job.supernode);
    const Topology topology = hosts_of(machine_of(job.supernode), job.supernode.devices);
    const JobForecast f = hyperrun::forecast(job, compiled.plan, topology);
    leader.simulated = static_cast<double>(f.step.value);
    leader.mfu = f.mfu;
    leader.fusion = fusion_of(compiled.plan, job.supernode);
    for (std::size_t c = 0; c < f.train.classes.size(); ++c)
      if (f.train.classes[c].end == f.train.makespan) leader.parts = f.train.parts[c];
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
    leader.why_not = e.cause();
    leader.fits = e.code() != Code::kDoesNotFit;
  }
  return leader;
}

}  // namespace hyperrun

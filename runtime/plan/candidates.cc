#include "runtime/plan/candidates.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/base/parallel.h"
#include "runtime/plan/incumbent_cutoff.h"
#include "runtime/plan/simulated_candidate.h"
#include "runtime/plan/topology_straddle.h"
#include "runtime/plan/transfers.h"

namespace hyperrun {
namespace {

constexpr std::size_t kInAllOrders = 4;           // best forecasts of each memory policy, for each leader
constexpr std::int64_t kProgressInterval = 4096;  // forecasts between two messages
constexpr double kDoubt = 1.06;                   // part of HBM up to which a forecast is tried
constexpr double kMuchDoubt = 2;  // the same with offloading, of HBM and of everything, if nothing else fits

bool sooner(const Forecasted& a, const Forecasted& b) { return a.forecast.time < b.forecast.time; }

class CandidateFinder {
 public:
  CandidateFinder(const Job& base, const SearchOptions& options)
      : base_(base),
        options_(options),
        hbm_(base.supernode.hbm.value),
        share_(pool_share(base, *options.space).value),
        forecaster_(base, *options.space, &structures_),
        spaces_(options.chosen_from()) {}

  Candidates run() {
    bound_strategies();
    forecast_strategies();
    reorder_the_best();
    return std::move(found_);
  }

 private:
  Survey& survey() { return found_.survey; }

  void report(const std::string& what, std::int64_t count) const {
    if (options_.progress) options_.progress(what, count);
  }

  void bound_strategies() {
    Bounds all = bound_all(
        base_, *options_.space, shapes_of(base_, *options_.space),
        [&](std::int64_t looked_at) { report("strategies bounded", looked_at); }, &structures_);
    kept_ = all.lowest();
    drop_bound(all.least_dropped());
    survey().strategies = all.strategies, survey().do_not_divide = all.do_not_divide;
    survey().do_not_fit = all.do_not_fit, survey().bounded = all.bounded;
    survey().alternatives = std::move(all.alternatives);
    survey().smallest = std::move(all.smallest);
    if (!survey().smallest.empty())
      survey().least_memory = Bytes(std::max<std::int64_t>(0, all.least_memory));
  }

  void drop(const Forecasted& f) { drop_bound(bound_if_dropped(f, Bytes(hbm_))); }
  void drop_bound(double bound) { found_.least_dropped = std::min(found_.least_dropped, bound); }

  Forecast placed(const Forecast& f, const Strategy& s) const {
    if (s.memory == PlanMemory::kNone) return f;
    return with_transfers(f, Tier::kPool, forecaster_.machine(), Bytes(hbm_));
  }

  // Forecasts are dropped afterwards if the final cut-off does not want them, so the result does not depend
  // on the order of threads.
  void forecast_strategies() {
    IncumbentCutoff incumbents(spaces_, leaders());
    const auto cutoff = [&](const Strategy& s) { return incumbents.cutoff(s); };
    std::vector<DroppedBounds> dropped(kept_.size());
    std::vector<std::unique_ptr<Forecasts>> found(kept_.size());  // null without a forecast
    std::int64_t count = 0;
    forecaster_.each(kept_, cutoff, [&](std::size_t i, Forecasts&& all) {
      dropped[i] = {all.bound_with_extra, all.bound_in_own_order};
      for (const auto* f : {&all.plain, &all.with_extra})
        if (*f && fits(**f)) incumbents.add((*f)->strategy, (*f)->forecast.time);
      if (all.plain || all.with_extra) {
        found[i] = std::make_unique<Forecasts>(std::move(all));
        if (++count % kProgressInterval == 0) report("strategies forecast", count);
      }
    });
    structures_.drop_beyond(0);  // not needed any more
    drop(dropped, cutoff);
    take_wanted(found, cutoff);
    sort_forecasts();
  }

  std::size_t leaders() const { return static_cast<std::size_t>(std::max(1, options_.leaders)); }

  // Lower bounds of a strategy, ns. 0: not computed.
  struct DroppedBounds {
    double bound_with_extra = 0, bound_in_own_order = 0;
  };

  void drop(const std::vector<DroppedBounds>& all, const Forecaster::Cutoff& cutoff) {
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (const double most = cutoff(kept_[i].strategy); kept_[i].bound > most)
        drop_bound(kept_[i].bound_with_extra);
      else if (all[i].bound_in_own_order > most)
        drop_bound(all[i].bound_with_extra);
  }

  void take_wanted(const std::vector<std::unique_ptr<Forecasts>>& found, const Forecaster::Cutoff& cutoff) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::unique_ptr<Forecasts>& all = found[i];
      if (!all || all->bound_in_own_order > cutoff(kept_[i].strategy)) continue;
      if (all->fewer_may_fit) drop_bound(all->with_extra->forecast.bound_with_extra);
      for (const auto* f : {&all->plain, &all->with_extra}) {
        if (!*f) continue;
        ++survey().forecast;
        consider((*f)->forecast, (*f)->strategy);
      }
    }
  }

  void sort_forecasts() { std::ranges::stable_sort(found_.forecasts, sooner); }

  // True if it fits without offloading. The memory of others is not known yet.
  bool fits(const Forecasted& f) const { return f.forecast.memory <= hbm_ && meets_constraints(f.strategy); }

  void consider(const Forecast& f, Strategy s) {
    const bool is_doubtful = static_cast<double>(f.memory) > kDoubt * static_cast<double>(hbm_);
    const bool moves_too_little = f.fixed > hbm_ || !has_room(f);
    // Extra recomputation and offloading are alternatives.
    if (is_doubtful && (moves_too_little || s.extra_recompute_layers > 0)) {
      if (moves_too_little) consider_with_doubt(f, s);
      drop_for_memory({f, s});
      return;
    }
    if (f.memory > hbm_ && share_ > 0 && s.extra_recompute_layers == 0) {
      s.memory = PlanMemory::kHyperOffload;
      if (f.least_memory <= hbm_) drop({f, s});  // it may fit without offloading
    }
    // The final strategy may meet the constraints.
    if (!meets(options_.space->only, s, DecidedAt::kForecast)) {
      drop({f, s});
      return;
    }
    found_.forecasts.push_back({placed(f, s), s});
    survey().alternatives.count_forecast(s, found_.forecasts.back().forecast);
  }

  // Drops a strategy that hardly fits. Its bound still counts.
  void drop_for_memory(const Forecasted& f) {
    if (f.forecast.least_memory <= hbm_) found_.unlikely.push_back(f);
    ++survey().dropped_for_memory;
    drop(f);
  }

  // True if HBM and pool of all devices together suffice.
  bool has_room(const Forecast& f) const { return share_ > 0 && f.mean <= hbm_ + share_; }

  // Keeps a strategy whose fixed bytes or total exceed the limits by its forecast, if not by much.
  void consider_with_doubt(const Forecast& f, Strategy s) {
    const bool may_be = share_ > 0 && overcommit(f, hbm_, share_) <= kMuchDoubt;
    s.memory = PlanMemory::kHyperOffload;
    if (may_be && s.extra_recompute_layers == 0 && meets(options_.space->only, s, DecidedAt::kForecast))
      found_.unlikely.push_back({f, s});
  }

  bool meets_constraints(const Strategy& s) const { return meets(options_.space->only, s); }

  // The best of each space and memory policy. Forecasts with offloading are too low, and would displace the
  // others.
  std::vector<Forecasted> take_best() {
    std::map<std::pair<const Space*, PlanMemory>, std::size_t> count;
    const auto rank_of = [&](const Strategy& s) {
      std::size_t rank = std::numeric_limits<std::size_t>::max();
      for (const Space* space : spaces_)
        if (can_express(*space, s)) rank = std::min(rank, count[{space, s.memory}]++);
      return rank;
    };
    std::vector<Forecasted> best;
    for (const Forecasted& f : found_.forecasts)
      if (const std::size_t rank = rank_of(f.strategy); rank < kInAllOrders * leaders())
        best.push_back({f.forecast, f.strategy, rank / (kInAllOrders * kLeadersPerTurn)});
      else if (mesh_of(f.strategy).size() > 1)
        drop(f);  // another axis order may be faster
    return best;
  }

  void reorder_the_best() {
    const std::vector<Forecasted> best = take_best();
    const std::vector<std::vector<std::size_t>> alike = sharded_alike(best);
    std::vector<Orders> others(best.size());
    parallel_for(alike.size(), [&](std::size_t g) {
      LayerProfileCache cache(base_);
      for (const std::size_t i : alike[g]) others[i] = in_other_orders(best[i], cache);
    });
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (others[i].incomplete) drop(best[i]);
      for (const Forecasted& f : others[i].list) {
        found_.forecasts.push_back(f);
        survey().alternatives.count_forecast(f.strategy, f.forecast);
      }
    }
    std::erase_if(found_.forecasts, [&](const Forecasted& f) { return !meets_constraints(f.strategy); });
    sort_forecasts();
    const auto large = std::ranges::find_if(
        found_.forecasts, [&](const Forecasted& f) { return !can_be_simulated(base_, f.strategy); });
    if (large != found_.forecasts.end()) survey().too_large = *large;
  }

  // Groups of strategies by index.
  static std::vector<std::vector<std::size_t>> sharded_alike(const std::vector<Forecasted>& list) {
    std::map<std::tuple<decltype(Strategy::sizes), PlanExperts, std::int32_t>, std::vector<std::size_t>>
        groups;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Strategy& s = list[i].strategy;
      groups[{s.sizes, s.experts, s.zero}].push_back(i);
    }
    std::vector<std::vector<std::size_t>> alike;
    for (auto& [_, group] : groups) alike.push_back(std::move(group));
    return alike;
  }

  struct Orders {
    std::vector<Forecasted> list;  // without the first
    bool incomplete = false;       // some orders have equal forecasts, but may have other steps
  };

  Orders in_other_orders(const Forecasted& first, LayerProfileCache& cache) const {
    std::vector<Strategy> orders;
    const bool is_first_wanted = meets_constraints(first.strategy);
    if (is_first_wanted) orders.push_back(first.strategy);
    for (const Strategy& s : orders_of(first.strategy))
      if (meets_constraints(s)) orders.push_back(s);
    std::vector<Forecasted> list = forecaster_.of_orders(orders, cache);
    const bool incomplete = has_other_orders(orders, list);
    if (is_first_wanted) list.erase(list.begin());
    for (auto& [forecast, strategy, turn] : list) {
      turn = first.turn;
      forecast.bound = std::max(forecast.bound, first.forecast.bound);
      forecast.bound_with_extra = first.forecast.bound_with_extra;
      forecast = placed(forecast, strategy);
    }
    return {std::move(list), incomplete};
  }

  // True if some order is equivalent to none of the forecast ones, for the machine and the compiler.
  bool has_other_orders(const std::vector<Strategy>& orders, const std::vector<Forecasted>& list) const {
    const auto first = [&](const Strategy& s) {
      return std::pair(in_first_order(s, forecaster_.machine()).order, as_sharded(s).order);
    };
    std::set<decltype(first(Strategy{}))> known;
    for (const Forecasted& f : list) known.insert(first(f.strategy));
    return std::ranges::any_of(orders, [&](const Strategy& s) { return !known.contains(first(s)); });
  }

  const Job& base_;
  const SearchOptions& options_;
  std::int64_t hbm_, share_;
  StructureCache structures_;
  Forecaster forecaster_;
  std::vector<const Space*> spaces_;
  std::vector<Bounded> kept_;
  Candidates found_;
};

}  // namespace

std::vector<const Space*> SearchOptions::chosen_from() const {
  std::vector<const Space*> list{space};
  if (leaders > 1 && space->name == spaces().front().name)
    for (const Space& s : spaces() | std::views::drop(1)) list.push_back(&s);
  return list;
}

Candidates candidates_of(const Job& base, const SearchOptions& options) {
  return CandidateFinder(base, options).run();
}

double bound_if_dropped(const Forecasted& candidate, Bytes hbm) {
  const Forecast& f = candidate.forecast;
  return candidate.strategy.extra_recompute_layers == 0 && f.memory > hbm.value ? f.bound
                                                                                : f.bound_with_extra;
}

}  // namespace hyperrun

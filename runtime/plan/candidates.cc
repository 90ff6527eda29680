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
#include "runtime/plan/leader.h"
#include "runtime/plan/outermost.h"
#include "runtime/plan/promises.h"
#include "runtime/plan/transfers.h"

namespace hyperrun {
namespace {

constexpr std::size_t kInAllOrders = 4;  // of the best forecasts of each memory policy, for each leader
constexpr std::int64_t kNews = 4096;     // forecasts between two words of progress
constexpr double kDoubt = 1.06;          // of HBM, that a forecast may take and yet be tried
constexpr double kMuchDoubt = 2;  // with transfers, where nothing else fits: of HBM and of all there is

bool sooner(const Forecasted& a, const Forecasted& b) { return a.forecast.time < b.forecast.time; }

class Choosing {
 public:
  Choosing(const Job& base, const SearchOptions& options)
      : base_(base),
        options_(options),
        hbm_(base.supernode.hbm.value),
        share_(pool_share(base, *options.space).value),
        forecasting_(base, *options.space, &structures_),
        spaces_(options.chosen_from()) {}

  Candidates run() {
    bound_them();
    forecast_some();
    reorder_the_best();
    return std::move(found_);
  }

 private:
  Survey& survey() { return found_.survey; }

  void say(const std::string& what, std::int64_t count) const {
    if (options_.progress) options_.progress(what, count);
  }

  void bound_them() {
    Bounds all = bound_all(
        base_, *options_.space, shapes_of(base_, *options_.space),
        [&](std::int64_t looked_at) { say("strategies bounded", looked_at); }, &structures_);
    kept_ = all.lowest();
    left_out(all.least_left());
    survey().strategies = all.strategies, survey().do_not_divide = all.do_not_divide;
    survey().do_not_fit = all.do_not_fit, survey().bounded = all.bounded;
    survey().alternatives = std::move(all.alternatives);
    survey().modest = std::move(all.modest);
    if (!survey().modest.empty()) survey().least_memory = Bytes(std::max<std::int64_t>(0, all.least_memory));
  }

  void leave(const Forecasted& f) { left_out(bound_left(f, Bytes(hbm_))); }
  void left_out(double bound) { found_.least_left = std::min(found_.least_left, bound); }

  Forecast placed(const Forecast& f, const Strategy& s) const {
    if (s.memory == PlanMemory::kNone) return f;
    return with_transfers(f, Tier::kPool, forecasting_.machine(), Bytes(hbm_));
  }

  // What is forecast does not depend on the order in which threads come to it: those that are not wanted at
  // the end go.
  void forecast_some() {
    Promises promises(spaces_, leaders());
    const auto enough = [&](const Strategy& s) { return promises.enough(s); };
    std::vector<Left> left(kept_.size());
    std::vector<std::unique_ptr<Forecasts>> found(kept_.size());  // where there are any
    std::int64_t count = 0;
    forecasting_.each(kept_, enough, [&](std::size_t i, Forecasts&& all) {
      left[i] = {all.bound_of_more, all.bound_as_it_is};
      for (const auto* f : {&all.as_it_is, &all.deeper})
        if (*f && fits(**f)) promises.add((*f)->strategy, (*f)->forecast.time);
      if (all.as_it_is || all.deeper) {
        found[i] = std::make_unique<Forecasts>(std::move(all));
        if (++count % kNews == 0) say("strategies forecast", count);
      }
    });
    structures_.drop_beyond(0);  // nobody asks for more of them
    leave(left, enough);
    take_wanted(found, enough);
    sort_forecasts();
  }

  std::size_t leaders() const { return static_cast<std::size_t>(std::max(1, options_.leaders)); }

  // Bounds of a strategy of kept_, ns: with any number of layers that recompute more in any order of axes,
  // and as it is. 0: nobody asked for them.
  struct Left {
    double bound_of_more = 0, bound_as_it_is = 0;
  };

  void leave(const std::vector<Left>& all, const Forecasting::Enough& enough) {
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (const double most = enough(kept_[i].strategy); kept_[i].bound > most)
        left_out(kept_[i].of_more);
      else if (all[i].bound_as_it_is > most)
        left_out(all[i].bound_of_more);
  }

  void take_wanted(const std::vector<std::unique_ptr<Forecasts>>& found, const Forecasting::Enough& enough) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::unique_ptr<Forecasts>& all = found[i];
      if (!all || all->bound_as_it_is > enough(kept_[i].strategy)) continue;
      if (all->fewer_may_fit) left_out(all->deeper->forecast.bound_of_more);
      for (const auto* f : {&all->as_it_is, &all->deeper}) {
        if (!*f) continue;
        ++survey().forecast;
        consider((*f)->forecast, (*f)->strategy);
      }
    }
  }

  void sort_forecasts() { std::ranges::stable_sort(found_.forecasts, sooner); }

  // Without the pool, in its own order: what others take is not known yet.
  bool fits(const Forecasted& f) const { return f.forecast.memory <= hbm_ && is_meant(f.strategy); }

  void consider(const Forecast& f, Strategy s) {
    const bool is_doubtful = static_cast<double>(f.memory) > kDoubt * static_cast<double>(hbm_);
    const bool moves_too_little = f.here > hbm_ || !has_room(f);
    // It recomputes more, or moves: not both.
    if (is_doubtful && (moves_too_little || s.deeper > 0)) {
      if (moves_too_little) consider_with_doubt(f, s);
      leave_for_memory({f, s});
      return;
    }
    if (f.memory > hbm_ && share_ > 0 && s.deeper == 0) {
      s.memory = PlanMemory::kHyperOffload;
      if (f.least_memory <= hbm_) leave({f, s});  // it may fit without
    }
    if (!meets(options_.space->only, s, Settled::kForecast)) {  // when it is placed it may
      leave({f, s});
      return;
    }
    found_.forecasts.push_back({placed(f, s), s});
    survey().alternatives.count_forecast(s, found_.forecasts.back().forecast);
  }

  // Unlikely to fit, and its bound stands.
  void leave_for_memory(const Forecasted& f) {
    if (f.forecast.least_memory <= hbm_) found_.unlikely.push_back(f);
    ++survey().left_for_memory;
    leave(f);
  }

  // Beyond HBM: all devices together.
  bool has_room(const Forecast& f) const { return share_ > 0 && f.mean <= hbm_ + share_; }

  // By what is forecast transfers would leave too much in HBM, or find too little room beyond it.
  void consider_with_doubt(const Forecast& f, Strategy s) {
    const bool may_be = share_ > 0 && overfull(f, hbm_, share_) <= kMuchDoubt;
    s.memory = PlanMemory::kHyperOffload;
    if (may_be && s.deeper == 0 && meets(options_.space->only, s, Settled::kForecast))
      found_.unlikely.push_back({f, s});
  }

  bool is_meant(const Strategy& s) const { return meets(options_.space->only, s); }

  // Of each space. Transfers promise more than they keep, and would leave no room for what has none.
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
        best.push_back({f.forecast, f.strategy, rank / (kInAllOrders * kLeadersOfATurn)});
      else if (mesh_of(f.strategy).size() > 1)
        leave(f);  // it may be faster in another order than its own
    return best;
  }

  void reorder_the_best() {
    const std::vector<Forecasted> best = take_best();
    const std::vector<std::vector<std::size_t>> alike = sharded_alike(best);
    std::vector<Orders> others(best.size());
    parallel_for(alike.size(), [&](std::size_t g) {
      PieceTable table(base_);
      for (const std::size_t i : alike[g]) others[i] = in_other_orders(best[i], table);
    });
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (others[i].left) leave(best[i]);
      for (const Forecasted& f : others[i].list) {
        found_.forecasts.push_back(f);
        survey().alternatives.count_forecast(f.strategy, f.forecast);
      }
    }
    std::erase_if(found_.forecasts, [&](const Forecasted& f) { return !is_meant(f.strategy); });
    sort_forecasts();
    const auto large = std::ranges::find_if(
        found_.forecasts, [&](const Forecasted& f) { return !can_be_simulated(base_, f.strategy); });
    if (large != found_.forecasts.end()) survey().too_large = *large;
  }

  // By index.
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
    std::vector<Forecasted> list;  // but for the first
    bool left = false;             // of others is known that they are forecast alike, not that they are alike
  };

  Orders in_other_orders(const Forecasted& first, PieceTable& table) const {
    std::vector<Strategy> orders;
    const bool is_first_meant = is_meant(first.strategy);
    if (is_first_meant) orders.push_back(first.strategy);
    for (const Strategy& s : orders_of(first.strategy))
      if (is_meant(s)) orders.push_back(s);
    std::vector<Forecasted> list = forecasting_.of_orders(orders, table);
    const bool left = some_left(orders, list);
    if (is_first_meant) list.erase(list.begin());
    for (auto& [forecast, strategy, turn] : list) {
      turn = first.turn;
      forecast.bound = std::max(forecast.bound, first.forecast.bound);
      forecast.bound_of_more = first.forecast.bound_of_more;
      forecast = placed(forecast, strategy);
    }
    return {std::move(list), left};
  }

  // Whether one of the orders is none of those forecast, for the machine and the compiler.
  bool some_left(const std::vector<Strategy>& orders, const std::vector<Forecasted>& list) const {
    const auto first = [&](const Strategy& s) {
      return std::pair(in_first_order(s, forecasting_.machine()).order, as_sharded(s).order);
    };
    std::set<decltype(first(Strategy{}))> known;
    for (const Forecasted& f : list) known.insert(first(f.strategy));
    return std::ranges::any_of(orders, [&](const Strategy& s) { return !known.contains(first(s)); });
  }

  const Job& base_;
  const SearchOptions& options_;
  std::int64_t hbm_, share_;
  KeptStructures structures_;
  Forecasting forecasting_;
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
  return Choosing(base, options).run();
}

double bound_left(const Forecasted& candidate, Bytes hbm) {
  const Forecast& f = candidate.forecast;
  return candidate.strategy.deeper == 0 && f.memory > hbm.value ? f.bound : f.bound_of_more;
}

}  // namespace hyperrun

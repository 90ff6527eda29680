#include "runtime/plan/search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/plan/piece_table.h"
#include "runtime/sim/job_forecast.h"

namespace hyperrun {
namespace {

constexpr std::size_t kKept = 200'000;    // strategies that a forecast may be made of
constexpr std::size_t kInAllOrders = 32;  // of the best forecasts
constexpr std::int32_t kTries = 4;  // strategies that are compiled for a leader, at most: some are refused
constexpr std::int64_t kNews = 100'000;  // strategies between two words of progress

struct Bounded {
  double bound = 0;
  bool needs_pool = false;
  Strategy strategy;
};
bool lower(const Bounded& a, const Bounded& b) { return a.bound < b.bound; }

struct Forecasted {
  Forecast forecast;
  Strategy strategy;
};
bool sooner(const Forecasted& a, const Forecasted& b) { return a.forecast.time < b.forecast.time; }

class Searching {
 public:
  Searching(const Job& base, const SearchOptions& options)
      : base_(base), options_(options), table_(base), hbm_(base.supernode.hbm.value) {}

  Search run() {
    bound_all();
    forecast_some();
    reorder_the_best();
    simulate_leaders();
    return std::move(result_);
  }

 private:
  void say(const std::string& what, std::int64_t count) const {
    if (options_.progress) options_.progress(what, count);
  }

  std::int32_t micro_batches_of(const Strategy& s) const { return micro_batches(s, base_.training.batch); }

  // --- bounds -------------------------------------------------------------------------------------

  void bound_all() {
    each_strategy(base_, *options_.space, [&](const Strategy& s) {
      result_.alternatives.count(s);
      if (++result_.strategies % kNews == 0) say("strategies bounded", result_.strategies);
      const Pieces* pieces = pieces_for(s);
      if (too_many_samples_) {
        ++result_.do_not_fit;
      } else if (pieces == nullptr) {
        ++result_.do_not_divide;
      } else {
        const Forecast f = least_form(s, base_.model, micro_batches_of(s), *pieces);
        if (s.schedule == PlanSchedule::k1f1b && f.least_kept > hbm_ + pool_share())
          most_samples_[recompute_of(s)] = s.samples;
        keep(s, f);
      }
    });
    std::ranges::sort(kept_, lower);
    say("strategies bounded", result_.strategies);
  }

  static std::size_t recompute_of(const Strategy& s) { return static_cast<std::size_t>(s.recompute); }

  // What least_form() looks at in the pieces changes less often than the rest. Larger micro-batches never
  // keep less: where activations alone are too many under 1f1b, which keeps the fewest, those of more samples
  // are not looked at.
  const Pieces* pieces_for(const Strategy& s) {
    if (s.sizes != latest_.sizes || s.expert_width != latest_.expert_width || latest_pieces_ == nullptr)
      most_samples_.fill(std::numeric_limits<std::int32_t>::max());
    const bool same = latest_known_ && s.sizes == latest_.sizes && s.samples == latest_.samples &&
                      s.recompute == latest_.recompute && s.expert_width == latest_.expert_width;
    if (same) return latest_pieces_;
    too_many_samples_ = s.samples > most_samples_[recompute_of(s)];
    latest_pieces_ = too_many_samples_ ? latest_pieces_ : table_.find_least(s);
    latest_ = s, latest_known_ = true;
    return latest_pieces_;
  }

  void keep(const Strategy& s, const Forecast& f) {
    result_.alternatives.count_divided(s, f.least_memory);
    Bounded b{f.bound, false, s};
    if (f.least_memory > hbm_) {
      if (!can_offload(f)) {
        note_nearest(s, f);
        ++result_.do_not_fit;
        return;
      }
      b.needs_pool = true;
      b.strategy.memory = PlanMemory::kHyperOffload;
    }
    result_.alternatives.count_fitting(s, f.bound);
    ++result_.bounded;
    kept_.push_back(b);
    if (kept_.size() == 2 * kKept) cut();
  }

  void cut() {
    const auto end = kept_.begin() + kKept;
    std::ranges::nth_element(kept_, end, lower);
    for (auto i = end; i != kept_.end(); ++i) left_out(i->bound);
    kept_.erase(end, kept_.end());
  }

  // A device's part of the pool takes what is beyond.
  bool can_offload(const Forecast& f) const {
    return pool_share() > 0 && f.least_memory <= hbm_ + pool_share();
  }

  std::int64_t pool_share() const {
    return options_.space->offload ? base_.supernode.pool.value / base_.supernode.devices : 0;
  }

  void note_nearest(const Strategy& s, const Forecast& f) {
    if (result_.nearest && Bytes(f.least_memory) >= result_.nearest_needs) return;
    result_.nearest = s;
    result_.nearest_needs = Bytes(f.least_memory);
  }

  void left_out(double bound) { least_left_ = std::min(least_left_, bound); }

  // --- forecasts ----------------------------------------------------------------------------------

  std::optional<Forecast> forecast_of(const Strategy& s) {
    const Pieces* pieces = table_.find(s);
    if (pieces == nullptr) return std::nullopt;
    ++result_.forecast;
    return closed_form(s, base_.model, micro_batches_of(s), *pieces, table_.message_time(s, *pieces));
  }

  Forecast placed(const Forecast& f, const Strategy& s) const {
    if (s.memory == PlanMemory::kNone) return f;
    return with_pool(f, micro_batches_of(s), table_.machine(), base_.supernode.hbm);
  }

  void forecast_some() {
    std::priority_queue<double> best;  // forecasts of those that fit, as many as are compiled at most
    const auto enough = static_cast<std::size_t>(kTries) * static_cast<std::size_t>(options_.leaders);
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (best.size() >= enough && kept_[i].bound > best.top()) {
        left_out(kept_[i].bound);
        break;
      }
      Strategy s = kept_[i].strategy;
      const std::optional<Forecast> f = forecast_of(s);
      if (!f) continue;
      const bool fits = f->memory <= hbm_;
      if (!fits && f->memory > hbm_ + pool_share()) {  // unlikely to fit, and its bound stands
        left_out(f->bound);
        continue;
      }
      if (!fits) s.memory = PlanMemory::kHyperOffload;
      forecasts_.push_back({placed(*f, s), s});
      result_.alternatives.count_forecast(s, forecasts_.back().forecast);
      if (fits) best.push(f->time);
      if (best.size() > enough) best.pop();
      if (result_.forecast % 1000 == 0) say("strategies forecast", result_.forecast);
    }
    std::ranges::sort(forecasts_, sooner);
    say("strategies forecast", result_.forecast);
  }

  // Where the groups lie as they did, nothing is different.
  void reorder_the_best() {
    const std::size_t best = std::min(forecasts_.size(), kInAllOrders);
    for (std::size_t i = 0; i < best; ++i) {
      const Strategy first = forecasts_[i].strategy;
      std::vector<std::pair<const Pieces*, double>> known{lies(first)};
      for (const Strategy& s : orders_of(first)) {
        const auto here = lies(s);
        if (here.first == nullptr || std::ranges::any_of(known, [&](const auto& other) {
              return here.second == other.second && *here.first == *other.first;
            }))
          continue;
        known.push_back(here);
        forecasts_.push_back({placed(*forecast_of(s), s), s});
      }
    }
    std::ranges::stable_sort(forecasts_, sooner);
  }

  std::pair<const Pieces*, double> lies(const Strategy& s) {
    const Pieces* pieces = table_.find(s);
    return {pieces, pieces == nullptr ? 0 : table_.message_time(s, *pieces)};
  }

  // --- simulations --------------------------------------------------------------------------------

  void simulate_leaders() {
    std::size_t i = 0;
    const std::int64_t tries = std::int64_t{kTries} * options_.leaders;
    for (std::int32_t simulated = 0;
         i < forecasts_.size() && simulated < options_.leaders && std::ssize(result_.leaders) < tries; ++i) {
      result_.leaders.push_back(try_strategy(base_, forecasts_[i].strategy, forecasts_[i].forecast));
      if (result_.leaders.back().simulated > 0) say("leaders simulated", ++simulated);
    }
    for (; i < forecasts_.size(); ++i) left_out(forecasts_[i].forecast.bound);
    result_.least_bound = least_left_;
    std::ranges::stable_sort(result_.leaders, [](const Leader& a, const Leader& b) {
      return (a.simulated > 0 ? a.simulated : 1e300) < (b.simulated > 0 ? b.simulated : 1e300);
    });
  }

  const Job& base_;
  const SearchOptions& options_;
  PieceTable table_;
  std::int64_t hbm_;
  std::vector<Bounded> kept_;
  std::vector<Forecasted> forecasts_;
  // Of the strategy that was looked at last.
  Strategy latest_;
  bool latest_known_ = false, too_many_samples_ = false;
  const Pieces* latest_pieces_ = nullptr;
  std::array<std::int32_t, 3> most_samples_{};  // by recomputation: that may fit, of the same axes
  double least_left_ = std::numeric_limits<double>::infinity();
  Search result_;
};

}  // namespace

double Search::gap() const {
  return found() ? std::max(0.0, leaders.front().simulated / least_bound - 1) : 0;
}

Search search(const Job& base, const SearchOptions& options) { return Searching(base, options).run(); }

Leader try_strategy(const Job& base, const Strategy& strategy, const Forecast& forecast) {
  Leader leader{.strategy = strategy, .forecast = forecast};
  leader.micro_batches = micro_batches(strategy, base.training.batch);
  const Job job = job_of(base, strategy);
  try {
    const Compiled compiled = compile(job);
    check_fits(compiled.plan, job.supernode);
    const Topology topology = hosts_of(machine_of(job.supernode), job.supernode.devices);
    const JobForecast f = hyperrun::forecast(job, compiled.plan, topology);
    leader.simulated = static_cast<double>(f.step.value);
    leader.mfu = f.mfu;
    leader.hbm = compiled.plan.peak();
    leader.pool = compiled.plan.of_all_devices(Tier::kPool);
    for (std::size_t c = 0; c < f.train.classes.size(); ++c)
      if (f.train.classes[c].end == f.train.makespan) leader.parts = f.train.parts[c];
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
    leader.why_not = e.cause();
  }
  return leader;
}

}  // namespace hyperrun

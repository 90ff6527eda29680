#include "runtime/plan/forecaster.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/base/parallel.h"
#include "runtime/plan/order_bounds.h"

namespace hyperrun {

double overcommit(const Forecast& f, std::int64_t hbm, std::int64_t share) {
  const auto over = [](std::int64_t bytes, std::int64_t room) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(room, 1));
  };
  return std::max(over(f.fixed, hbm), over(f.mean, hbm + share));
}

Forecaster::Forecaster(const Job& base, const Space& space, StructureCache* structures)
    : base_(base), space_(space), hbm_(base.supernode.hbm.value), structures_(structures), cache_(base) {}

std::optional<Forecast> Forecaster::forecast_of(const Strategy& strategy) {
  return forecast_of(strategy, cache_);
}

std::vector<Forecasted> Forecaster::of_orders(std::span<const Strategy> orders,
                                              LayerProfileCache& cache) const {
  std::vector<std::pair<const StepProfile*, double>>
      known;  // with the message time; strategies with equal pairs are equal
  std::vector<Forecasted> list;
  for (const Strategy& s : orders) {
    const StepProfile* profile = cache.profile(s);
    if (profile == nullptr) continue;
    const double message = cache.message_time(s, *profile);
    if (std::ranges::any_of(known,
                            [&](const auto& k) { return k.second == message && *k.first == *profile; }))
      continue;
    known.emplace_back(profile, message);
    list.push_back({*forecast_of(s, cache), s});
  }
  return list;
}

std::optional<StepProfiles> Forecaster::profiles_of(const Strategy& s, LayerProfileCache& cache) const {
  StepProfiles profiles{cache.profile(s), nullptr};
  if (profiles.base == nullptr) return std::nullopt;
  if (s.extra_recompute_layers > 0) {
    Strategy more = s;
    more.recompute = *stronger_recompute(s.recompute);
    profiles.extra = cache.profile(more);
    if (profiles.extra == nullptr) return std::nullopt;
  }
  return profiles;
}

std::optional<Forecast> Forecaster::forecast_of(const Strategy& s, LayerProfileCache& cache) const {
  const std::optional<StepProfiles> of = profiles_of(s, cache);
  if (!of) return std::nullopt;
  return closed_form(s, base_.model, micro_batches(s, base_.training.batch), *of,
                     cache.message_time(s, *of->base));
}

void Forecaster::forecast_of(const Strategy& s, LayerProfileCache& cache, Forecasts& all) const {
  if (s.extra_recompute_layers > 0) return forecast_with_extra(s, cache, all);
  std::optional<Forecast> f = forecast_of(s, cache);
  if (!f) return;
  f->bound = std::max(f->bound, all.bound), f->bound_with_extra = all.bound_with_extra;
  if (may_be(s)) all.plain = {*f, s};
  if ((f->memory > hbm_ || !may_be(s)) && stronger_recompute(s.recompute)) forecast_with_extra(s, cache, all);
}

bool Forecaster::may_be(const Strategy& s) const { return meets(space_.only, s, DecidedAt::kBounded); }

// More extra recomputing layers keep less, so bisection finds the fewest that fit. If none fits by the
// forecast, which may be too high, the most are taken.
void Forecaster::forecast_with_extra(Strategy s, LayerProfileCache& cache, Forecasts& all) const {
  s.extra_recompute_layers = std::max(1, s.extra_recompute_layers);
  if (!may_be(s)) return;
  const std::int32_t most = most_layers(s, base_.model.layers);
  const auto first_that = [&](std::int32_t from, auto fits) {
    std::int32_t until = most;
    while (from < until) {
      s.extra_recompute_layers = from + (until - from) / 2;
      const std::optional<Forecast> f = forecast_of(s, cache);
      if (f && fits(*f))
        until = s.extra_recompute_layers;
      else
        from = s.extra_recompute_layers + 1;
    }
    return s.extra_recompute_layers = from;
  };
  const std::int32_t may =
      first_that(s.extra_recompute_layers, [&](auto& f) { return f.least_memory <= hbm_; });
  if (may >= most) return;
  const std::int32_t does = first_that(may, [&](auto& f) { return f.memory <= hbm_; });
  s.extra_recompute_layers = std::min(does, most - 1);
  all.with_extra = {*forecast_of(s, cache), s};
  all.fewer_may_fit = may < s.extra_recompute_layers;
  s.extra_recompute_layers = may;
  const double least = bound_with_extra(s, base_.model, micro_batches(s, base_.training.batch),
                                        *profiles_of(s, cache), nullptr);
  all.with_extra->forecast.bound_with_extra = std::max(all.bound_with_extra, least);
}

// Forecasts all strategies on all cores. Those that share structures are done by one thread, in a cache that
// is dropped afterwards. Groups with the least bounds come first, so that the cut-off falls early. Within a
// group the order is that of the second bound.
class Forecaster::Worker {
 public:
  Worker(const Forecaster& forecaster, std::span<const Bounded> list, const Cutoff& cutoff, const Take& take)
      : forecaster_(forecaster), list_(list), cutoff_(cutoff), take_(take) {}

  void run() {
    group();
    std::atomic<std::size_t> next{0};
    parallel_for(std::max(1U, std::thread::hardware_concurrency()), [&](std::size_t) {
      LayerProfileCache cache(forecaster_.base_);
      for (std::size_t g = next++; g < groups_.size(); g = next++) {
        if (forecaster_.structures_ != nullptr)
          cache.swap_structures(forecaster_.structures_->take(groups_[g].key));
        look_at(groups_[g].list, cache);
        cache.swap_structures();
      }
    });
  }

 private:
  struct Group {
    std::string key;
    std::vector<std::size_t> list;  // indices in list_
  };

  struct Refined {
    double in_own_order;  // ns
    std::size_t index;
  };

  // Groups in the order of their least bounds, like the list.
  void group() {
    std::unordered_map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const std::string key = forecaster_.cache_.key_of_group(list_[i].strategy);
      const auto [it, is_new] = known.try_emplace(key, groups_.size());
      if (is_new) groups_.push_back({key, {}});
      groups_[it->second].list.push_back(i);
    }
  }

  void look_at(const std::vector<std::size_t>& group, LayerProfileCache& cache) {
    OrderBounds bounds(forecaster_.base_, cache);
    std::vector<Refined> refined;
    for (const std::size_t i : group)
      if (list_[i].bound <= cutoff_(list_[i].strategy))
        refined.push_back({bounds.in_own_order(list_[i].strategy), i});
    std::ranges::stable_sort(refined, {}, &Refined::in_own_order);
    for (const auto& [in_own_order, i] : refined) {
      const auto& [bound, strategy, bound_with_extra] = list_[i];
      Forecasts all{bound, std::max(bound, in_own_order), bound_with_extra};
      const bool wanted = all.bound_in_own_order <= cutoff_(strategy);
      if (wanted || all.bound_with_extra < least_dropped_) refine(all, strategy, bounds);
      if (wanted) forecaster_.forecast_of(strategy, cache, all);
      const std::lock_guard lock(mutex_);
      if (!wanted) least_dropped_ = std::min<double>(least_dropped_, all.bound_with_extra);
      take_(i, std::move(all));
    }
  }

  void refine(Forecasts& all, const Strategy& strategy, OrderBounds& bounds) const {
    const OrderBounds::Bound second = bounds.of(strategy);
    all.bound = std::max(all.bound, second.in_any_order);
    const bool may_be_more = may_recompute_extra(strategy, forecaster_.base_.model.layers);
    all.bound_with_extra = may_be_more ? std::max(all.bound_with_extra, second.bound_with_extra) : all.bound;
  }

  const Forecaster& forecaster_;
  std::span<const Bounded> list_;
  const Cutoff& cutoff_;
  const Take& take_;
  std::mutex mutex_;
  // The least bound with extra recomputing layers of strategies that need no forecast, ns. For others with no
  // lower value, a better bound would not improve the certificate.
  std::atomic<double> least_dropped_ = std::numeric_limits<double>::infinity();
  std::vector<Group> groups_;
};

void Forecaster::each(std::span<const Bounded> list, const Cutoff& cutoff, const Take& take) {
  Worker(*this, list, cutoff, take).run();
}

}  // namespace hyperrun

#include "runtime/plan/bounding.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/base/parallel.h"
#include "runtime/plan/balance.h"
#include "runtime/plan/layer_profile_cache.h"
#include "runtime/plan/lower_bound_profile.h"
#include "runtime/plan/pipeline_devices.h"
#include "runtime/plan/transfers.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kProgressInterval = 20'000;  // strategies between two messages

// Bounds of all threads, ns; strategies above need not be kept.
struct Cutoffs {
  std::atomic<double> kept = std::numeric_limits<double>::infinity();
  std::atomic<double> offloaded = std::numeric_limits<double>::infinity();
};

class GroupBounder {
 public:
  GroupBounder(const Job& job, const Space& space, LayerProfileCache& cache,
               const std::function<void(std::int64_t)>& on_progress, const Cutoffs& cutoff)
      : job_(job),
        space_(space),
        cache_(cache),
        on_progress_(on_progress),
        cutoff_(cutoff),
        hbm_(job.supernode.hbm.value),
        share_(pool_share(job, space).value) {}

  Bounds run(std::span<const Strategy> shapes) {
    for (const Strategy& shape : shapes)
      each_of_shape(job_, space_, shape, [&](const Strategy& s) { bound_with_balanced(s); });
    on_progress_(result_.strategies % kProgressInterval);
    result_.kept.trim(), result_.kept_offloaded.trim();
    return std::move(result_);
  }

 private:
  void bound_with_balanced(const Strategy& s) {
    find_profiles(s);
    bound(s);
    if (const Strategy* uneven = balanced_like(s)) bound(*uneven);
  }

  // Looks the profiles up if they are not those of the last strategy.
  void find_profiles(const Strategy& s) {
    const bool same = known_ && s.sizes == latest_.sizes && s.samples == latest_.samples &&
                      s.recompute == latest_.recompute && s.experts == latest_.experts;
    if (same) return;
    profiles_.base = cache_.bound_profile(s);
    profiles_.extra = profiles_.base == nullptr ? nullptr : extra_profile_of(s);
    latest_ = s, known_ = true;
    per_chunks_.clear();
  }

  const StepProfile* extra_profile_of(Strategy s) {
    const std::optional<PlanRecompute> next = stronger_recompute(s.recompute);
    if (!next) return nullptr;
    s.recompute = *next;
    return cache_.bound_profile(s);
  }

  // Layers distributed to devices, evenly or balanced.
  struct Distribution {
    std::optional<PipelineDevices> layers;
    // State is split for the latest ZeRO stage.
    std::array<std::optional<PipelineDevices>, kSchedules> devices;
    std::optional<double> ratio;  // least ratio of the bound with extra recomputing layers
  };

  struct PerChunks {
    std::optional<Strategy> balanced;  // the even strategy itself if balancing does not help
    Distribution even, uneven;
  };

  PerChunks& per_chunks(const Strategy& s) {
    const auto chunks = static_cast<std::size_t>(s.chunks);
    if (per_chunks_.size() <= chunks) per_chunks_.resize(chunks + 1);
    return per_chunks_[chunks];
  }

  const Strategy* balanced_like(const Strategy& s) {
    if (profiles_.base == nullptr || !space_.uneven || s[PlanAxis::kPipeline] == 1) return nullptr;
    std::optional<Strategy>& known = per_chunks(s).balanced;
    if (!known) known = balanced(s, job_.model, *profiles_.base).value_or(s);
    if (known->first_stage_shortfall == 0 && known->last_stage_shortfall == 0) return nullptr;
    uneven_ = s;
    uneven_.first_stage_shortfall = known->first_stage_shortfall,
    uneven_.last_stage_shortfall = known->last_stage_shortfall;
    return &uneven_;
  }

  bool meets_all(const Strategy& s) const { return meets(space_.only, s, DecidedAt::kBounded); }

  // True if the constraints allow the strategy with extra recomputing layers.
  bool meets_with_extra(Strategy s) const {
    if (s.extra_recompute_layers > 0 || !may_recompute_extra(s, job_.model.layers)) return false;
    s.extra_recompute_layers = 1;
    return meets_all(s);
  }

  void count(Strategy s) {
    if (!meets_all(s)) {
      if (!meets_with_extra(s)) return;
      s.extra_recompute_layers = 1;
    }
    result_.alternatives.count(s);
    if (++result_.strategies % kProgressInterval == 0) on_progress_(kProgressInterval);
  }

  Distribution& distribution_of(const Strategy& s) {
    PerChunks& known = per_chunks(s);
    return s.first_stage_shortfall == 0 && s.last_stage_shortfall == 0 ? known.even : known.uneven;
  }

  double share(const Strategy& s) {
    std::optional<double>& ratio = distribution_of(s).ratio;
    if (!ratio) ratio = extra_recompute_share(profiles_, s, job_.model.layers);
    return *ratio;
  }

  Forecast least_form_of(const Strategy& s) {
    const std::int32_t m = micro_batches(s, job_.training.batch);
    if (s.extra_recompute_layers > 0) return closed_form_bound(s, job_.model, m, profiles_);
    Distribution& distribution = distribution_of(s);
    if (!distribution.layers) distribution.layers = layers_on_devices(s, job_.model, profiles_);
    std::optional<PipelineDevices>& devices = distribution.devices[static_cast<std::size_t>(s.schedule)];
    if (!devices) devices = with_ends(*distribution.layers, s, job_.model, profiles_);
    split_state(*devices, s, job_.model, profiles_);
    return closed_form_bound(s, m, profiles_, *devices);
  }

  Forecast bounds_of(const Strategy& s) {
    Forecast f = least_form_of(s);
    if (may_recompute_extra(s, job_.model.layers)) {  // extra recomputation may avoid transfers
      f.bound_with_extra = share(s) * f.bound;
      return f;
    }
    f.bound = std::max(f.bound, least_transfers(f, cache_.machine().pool, job_.supernode.hbm));
    f.bound_with_extra = f.bound;
    return f;
  }

  // Bounds a strategy, even one that meets the constraints only with extra recomputing layers.
  void bound(const Strategy& s) {
    count(s);
    if (profiles_.base == nullptr) {
      result_.do_not_divide += meets_all(s) ? 1 : 0;
      return;
    }
    const Forecast f = bounds_of(s);
    keep(s, f, share_ > 0);
    count_smallest_with_extra(s, f);
    if (cannot_fit(f, share_ > 0)) bound_with_extra_layers(s, f);
  }

  // If only extra recomputation meets the constraints: records the variant that needs least memory.
  void count_smallest_with_extra(Strategy s, const Forecast& without) {
    if (meets_all(s) || profiles_.extra == nullptr || !meets_with_extra(s)) return;
    s.extra_recompute_layers = most_layers(s, job_.model.layers) - 1;
    Forecast f = bounds_of(s);
    f.bound = f.bound_with_extra = without.bound_with_extra;
    add_smallest(s, f);
  }

  void add_smallest(const Strategy& s, const Forecast& f) {
    const std::int64_t least = share_ > 0 ? std::max(f.least_fixed, f.least_mean - share_) : f.least_memory;
    result_.least_memory = std::min(result_.least_memory, least);
    result_.add_smallest({Bytes(f.least_memory), Bytes(f.memory), s, f.bound, f.bound_with_extra});
  }

  // For a strategy that cannot fit: bounds the variant with the fewest extra recomputing layers that may fit
  // HBM. With all layers it would be the strategy with stronger recomputation.
  void bound_with_extra_layers(Strategy s, const Forecast& without) {
    if (profiles_.extra == nullptr) return;
    const std::int32_t all = most_layers(s, job_.model.layers);
    s.extra_recompute_layers = all;
    const Forecast most = bounds_of(s);
    if (most.least_memory > hbm_) return;
    // Memory is nearly linear in the number of layers.
    const double part = static_cast<double>(without.least_memory - hbm_) /
                        static_cast<double>(without.least_memory - most.least_memory);
    s.extra_recompute_layers = std::clamp(static_cast<std::int32_t>(std::ceil(all * part)), 1, all);
    Forecast f = bounds_of(s);
    while (s.extra_recompute_layers > 1) {
      --s.extra_recompute_layers;
      const Forecast fewer = bounds_of(s);
      if (fewer.least_memory > hbm_) {
        ++s.extra_recompute_layers;
        break;
      }
      f = fewer;
    }
    for (; f.least_memory > hbm_; f = bounds_of(s)) ++s.extra_recompute_layers;
    if (s.extra_recompute_layers < all) {
      count(s);
      keep(s, f, false);
    }
  }

  // True if the strategy needs more than there is: of HBM, or with offloading of HBM and pool on average, or
  // of HBM for what no policy moves.
  bool cannot_fit(const Forecast& f, bool moves) const {
    return moves ? f.least_mean > hbm_ + share_ || f.least_fixed > hbm_ : f.least_memory > hbm_;
  }

  void keep(const Strategy& s, const Forecast& f, bool moves) {
    const bool meets = meets_all(s);
    if (!meets && !meets_with_extra(s)) return;
    if (meets) result_.alternatives.count_divided(f.least_memory);
    // A variant that recomputes as much as HBM demands needs all of HBM, so it does not tell how little would
    // do.
    if (meets && s.extra_recompute_layers == 0) add_smallest(s, f);
    if (cannot_fit(f, moves)) {
      result_.do_not_fit += meets ? 1 : 0;
      return;
    }
    if (meets) result_.alternatives.count_fitting(s, f.bound_with_extra);
    ++result_.bounded;
    result_.least = std::min(result_.least, f.bound);
    const bool fits = f.least_memory <= hbm_;
    LowestBounds& list = fits ? result_.kept : result_.kept_offloaded;
    if (f.bound > (fits ? cutoff_.kept : cutoff_.offloaded).load(std::memory_order_relaxed))
      list.drop(f.bound_with_extra);
    else
      list.add({f.bound, s, f.bound_with_extra});
  }

  const Job& job_;
  const Space& space_;
  LayerProfileCache& cache_;
  const std::function<void(std::int64_t)>& on_progress_;
  const Cutoffs& cutoff_;
  std::int64_t hbm_, share_;
  // The last strategy bounded.
  Strategy latest_, uneven_;
  bool known_ = false;
  StepProfiles profiles_;
  std::vector<PerChunks> per_chunks_;  // by chunks of a device
  Bounds result_;
};

// Bounds all groups of shapes with a common structure in threads, the largest first. Results are merged in
// the order of groups, so that they do not depend on timing.
class ParallelBounder {
 public:
  ParallelBounder(const Job& job, const Space& space, const std::function<void(std::int64_t)>& on_progress,
                  StructureCache* structures)
      : job_(job), space_(space), on_progress_(on_progress), structures_(structures) {}

  Bounds run(std::span<const Strategy> shapes) {
    group(shapes);
    std::vector<std::size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t g) { return groups_[g].size(); });
    std::atomic<std::size_t> next{0};
    parallel_for(std::max(1U, std::thread::hardware_concurrency()), [&](std::size_t) {
      LayerProfileCache cache(job_);
      for (std::size_t i = next++; i < order.size(); i = next++) {
        const std::vector<Strategy>& group = groups_[order[i]];
        Bounds bounds = GroupBounder(job_, space_, cache, on_group_progress_, cutoff_).run(group);
        auto structures = cache.swap_structures();
        if (structures_ != nullptr)
          structures_->keep(cache.key_of_group(group.front()), bounds.least, std::move(structures));
        take(order[i], std::move(bounds));
      }
    });
    all_.kept.trim(), all_.kept_offloaded.trim();
    if (structures_ != nullptr) structures_->drop_beyond(greatest_kept());
    return std::move(all_);
  }

 private:
  void group(std::span<const Strategy> shapes) {
    const LayerProfileCache cache(job_);
    std::unordered_map<std::string, std::size_t> known;
    for (const Strategy& shape : shapes) {
      const std::size_t g = known.try_emplace(cache.key_of_group(shape), groups_.size()).first->second;
      if (g == groups_.size()) groups_.emplace_back();
      groups_[g].push_back(shape);
    }
  }

  double greatest_kept() const {
    double greatest = 0;
    for (const LowestBounds* list : {&all_.kept, &all_.kept_offloaded})
      for (const Bounded& b : list->list()) greatest = std::max(greatest, b.bound);
    return greatest;
  }

  // The order in which kept strategies are merged does not matter.
  void take(std::size_t group, Bounds bounds) {
    const std::lock_guard lock(mutex_);
    all_.kept.add(std::exchange(bounds.kept, {}));
    all_.kept_offloaded.add(std::exchange(bounds.kept_offloaded, {}));
    cutoff_.kept = all_.kept.cutoff(), cutoff_.offloaded = all_.kept_offloaded.cutoff();
    waiting_.emplace(group, std::move(bounds));
    for (auto i = waiting_.begin(); i != waiting_.end() && i->first == taken_;
         i = waiting_.erase(i), ++taken_)
      all_.add(std::move(i->second));
  }

  const Job& job_;
  const Space& space_;
  const std::function<void(std::int64_t)>& on_progress_;
  StructureCache* structures_;
  std::mutex mutex_;
  const std::function<void(std::int64_t)> on_group_progress_ = [this](std::int64_t more) {
    const std::lock_guard lock(mutex_);
    on_progress_(counted_ += more);
  };
  std::int64_t counted_ = 0;
  std::vector<std::vector<Strategy>> groups_;
  std::map<std::size_t, Bounds> waiting_;  // results that wait for those of earlier groups
  std::size_t taken_ = 0;
  Bounds all_;
  Cutoffs cutoff_;
};

}  // namespace

bool lower(const Bounded& a, const Bounded& b) {
  const auto rank = [](const Bounded& x) {
    const Strategy& s = x.strategy;
    return std::tuple(x.bound, s.sizes, s.zero, s.samples, s.chunks, s.schedule, s.recompute,
                      s.extra_recompute_layers, s.experts, s.first_stage_shortfall, s.last_stage_shortfall);
  };
  return a.bound != b.bound ? a.bound < b.bound : rank(a) < rank(b);
}

void LowestBounds::add(const Bounded& b) {
  list_.push_back(b);
  if (list_.size() == 2 * kMost) trim();
}

void LowestBounds::add(LowestBounds&& other) {
  for (const Bounded& b : other.list_)
    if (b.bound > cutoff_)
      drop(b.bound_with_extra);
    else
      list_.push_back(b);
  drop(other.least_dropped_);
  if (list_.size() > kMost + kMost / 8) trim();
}

// Sorting plain bounds is much faster than sorting strategies.
void LowestBounds::trim() {
  if (list_.size() <= kMost) return;
  std::vector<double> bounds;
  bounds.reserve(list_.size());
  for (const Bounded& b : list_) bounds.push_back(b.bound);
  const auto last = bounds.begin() + (kMost - 1);
  std::ranges::nth_element(bounds, last);
  cutoff_ = *last;
  const auto equal = std::ranges::partition(list_, [&](const Bounded& b) { return b.bound < cutoff_; });
  const auto more = std::ranges::partition(equal, [&](const Bounded& b) { return b.bound == cutoff_; });
  const auto end = list_.begin() + kMost;
  std::ranges::nth_element(equal.begin(), end, more.begin(), lower);
  for (auto i = end; i != list_.end(); ++i) drop(i->bound_with_extra);
  list_.erase(end, list_.end());
}

void Bounds::add_smallest(const MemoryNeed& needs) {
  if (smallest.size() == kMostSmallest && needs.expected >= smallest.back().expected) return;
  const auto kin = [](const Strategy& s) {
    return std::tuple(s.sizes, s.experts, s.zero, s.samples, s.schedule, s.recompute,
                      s.extra_recompute_layers > 0);
  };
  const auto same = std::ranges::find_if(
      smallest, [&](const MemoryNeed& n) { return kin(n.strategy) == kin(needs.strategy); });
  if (same != smallest.end()) {
    if (same->expected <= needs.expected) return;
    smallest.erase(same);
  }
  smallest.insert(std::ranges::upper_bound(smallest, needs.expected, {}, &MemoryNeed::expected), needs);
  if (smallest.size() > kMostSmallest) smallest.pop_back();
}

void Bounds::add(Bounds&& other) {
  kept.add(std::move(other.kept)), kept_offloaded.add(std::move(other.kept_offloaded));
  least = std::min(least, other.least);
  strategies += other.strategies, do_not_divide += other.do_not_divide;
  do_not_fit += other.do_not_fit, bounded += other.bounded;
  alternatives.add(other.alternatives);
  least_memory = std::min(least_memory, other.least_memory);
  for (const MemoryNeed& needs : other.smallest) add_smallest(needs);
}

std::vector<Bounded> Bounds::lowest() const {
  std::vector<Bounded> list = kept.list();
  list.insert(list.end(), kept_offloaded.list().begin(), kept_offloaded.list().end());
  std::ranges::sort(list, lower);
  return list;
}

Bounds bound_all(const Job& job, const Space& space, std::span<const Strategy> shapes,
                 const std::function<void(std::int64_t)>& on_progress, StructureCache* structures) {
  return ParallelBounder(job, space, on_progress, structures).run(shapes);
}

Bytes pool_share(const Job& job, const Space& space) {
  return space.may_offload() ? Bytes(job.supernode.pool.value / job.supernode.devices) : Bytes{};
}

}  // namespace hyperrun

#include "runtime/plan/nearest_feasible.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/parallel.h"
#include "runtime/compile/compile.h"
#include "runtime/plan/device_counts.h"

namespace hyperrun {
namespace {

constexpr int kDoublings = 6;
// More HBM or pool than any strategy takes.
constexpr Bytes kPlenty{std::int64_t{1} << 50};
// Limits of strategies to compile and of their passes (the first is compiled in any case). Compiling large
// models takes long, planning transfers longer.
struct Limit {
  std::size_t candidates;
  std::int64_t passes;
};
constexpr Limit kSmallest{Bounds::kMostSmallest, kMostPasses / 4},
    kSmallestOffloaded{4, kMostOffloadedPasses / 4};
// Steps of bisection for the least memory, if searches and compilations are quick.
constexpr int kHalvings = 4;
constexpr std::int32_t kLeaders = 8;  // leaders of the final search for a remedy

std::int32_t most_devices(const Job& base) {
  const std::int32_t of_machine = machine_of(base.supernode).devices;
  const std::int64_t doubled = std::int64_t{base.supernode.devices} << kDoublings;
  return static_cast<std::int32_t>(
      std::min<std::int64_t>({of_machine > 0 ? of_machine : doubled, doubled, 1 << 20}));
}

// Weights and optimizer state of the model. All devices together hold at least one copy.
Bytes state_of(const Job& base) {
  const Graph graph = sharded_training(job_of(with_devices(base, 1), Strategy{}));
  Bytes all{};
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.cls == TensorClass::kWeight || tensor.cls == TensorClass::kOptimizer)
      all += Bytes(graph.elements(TensorId(t)) * size_of(tensor.dtype));
  }
  return all;
}

// The resource that may be raised.
using Figure = Bytes& (*)(SupernodeSpec&);
Bytes& hbm_of(SupernodeSpec& spec) { return spec.hbm; }
Bytes& pool_of(SupernodeSpec& spec) { return spec.pool; }

class FeasibleFinder {
 public:
  FeasibleFinder(const Job& base, const Search& failed, const NearestFeasibleOptions& options)
      : base_(base), failed_(failed), options_(options) {}

  NearestFeasible run() {
    NearestFeasible feasible{.most_devices = base_.supernode.devices};
    const std::int32_t most = most_devices(base_);
    const Bytes state = state_of(base_);
    for (std::int64_t n = 2 * std::int64_t{base_.supernode.devices}; n <= most && !feasible.more_devices;
         n *= 2) {
      feasible.most_devices = static_cast<std::int32_t>(n);
      const SupernodeSpec spec = with_devices(base_, feasible.most_devices).supernode;
      const Bytes room = Bytes(spec.hbm.value * n) + (options_.space->may_offload() ? spec.pool : Bytes());
      if (state <= room) feasible.more_devices = search_on(spec, {.leaders = 1, .unlikely = false});
    }
    if (feasible.more_devices && is_quick())
      if (auto better =
              search_on(with_devices(base_, feasible.most_devices).supernode, {.leaders = kLeaders}))
        feasible.more_devices = std::move(better);
    feasible.more_hbm =
        cheapest_that_fits(PlanMemory::kNone, hbm_of, [](const SimulatedCandidate& l) { return l.hbm; });
    const bool moves = options_.space->may_offload() && machine_of(base_.supernode).pool.exists();
    if (moves && pool_share(base_, *options_.space).value > 0) add_hbm_beside_pool(feasible.more_hbm);
    if (moves)
      feasible.more_pool = cheapest_that_fits(PlanMemory::kHyperOffload, pool_of,
                                              [](const SimulatedCandidate& l) { return l.pool; });
    return feasible;
  }

 private:
  bool is_quick() const {
    return failed_.is_quick(base_.model.layers) &&
           std::int64_t{base_.model.layers} * base_.training.batch <= kQuickPasses;
  }

  // Compiles the strategies that need least with plenty of the resource. The least that one takes is enough.
  template <class Takes>
  std::optional<ResourceRemedy> cheapest_that_fits(PlanMemory memory, Figure of, Takes takes) const {
    Job plenty = base_;
    of(plenty.supernode) = kPlenty;
    std::vector<SimulatedCandidate> some = compile_smallest(plenty, memory);
    std::erase_if(some, [](const SimulatedCandidate& l) { return l.simulated == 0; });
    if (some.empty()) return std::nullopt;
    const Bytes least = takes(*std::ranges::min_element(some, {}, takes));
    SupernodeSpec enough = base_.supernode;
    if (least <= of(enough)) return std::nullopt;  // the job does not lack this resource
    of(enough) = least;
    return is_quick() ? bisected(enough, std::nullopt, of) : best_on(enough, of, 1);
  }

  // For HBM: a strategy without offloading fits into what it takes.
  static ResourceRemedy with_hbm_needed(ResourceRemedy remedy, Figure of) {
    const SimulatedCandidate& l = remedy.leader;
    if (of == Figure{hbm_of} && l.strategy.memory == PlanMemory::kNone) remedy.supernode.hbm = l.hbm;
    return remedy;
  }

  std::optional<ResourceRemedy> best_on(const SupernodeSpec& spec, Figure of, std::int32_t leaders) const {
    auto best = search_on(spec, {.leaders = leaders});
    return best ? std::optional(with_hbm_needed(std::move(*best), of)) : std::nullopt;
  }

  // Bisects between the job's resource and `enough`, for which `found` is known. Other strategies may need
  // less than those with the least forecasts.
  std::optional<ResourceRemedy> bisected(SupernodeSpec enough, std::optional<ResourceRemedy> found,
                                         Figure of) const {
    SupernodeSpec spec = base_.supernode;
    Bytes too_little = of(spec);
    const int halvings = too_little < of(enough) ? kHalvings : 0;
    for (int i = 0; i < halvings; ++i) {
      of(spec) = Bytes(std::midpoint(too_little.value, of(enough).value));
      if (auto less = best_on(spec, of, 1))
        enough = less->supernode, found = std::move(less);
      else
        too_little = of(spec);
    }
    auto best = best_on(enough, of, kLeaders);
    return best ? best : found;
  }

  // With a pool, less HBM may suffice. A strategy that does not fit is compiled for the least HBM that would
  // do (runtime/compile/choose_memory_plan.h).
  void add_hbm_beside_pool(std::optional<ResourceRemedy>& more_hbm) const {
    const std::vector<SimulatedCandidate> some = compile_smallest(base_, PlanMemory::kHyperOffload);
    std::vector<Bytes> enough;
    for (const SimulatedCandidate& l : some)
      if (!l.fits && l.hbm > base_.supernode.hbm) enough.push_back(l.hbm);
    std::ranges::sort(enough);
    for (const Bytes hbm : enough) {
      if (more_hbm && hbm >= more_hbm->supernode.hbm) return;
      SupernodeSpec spec = base_.supernode;
      spec.hbm = hbm;
      if (auto found = best_on(spec, hbm_of, 1)) {
        const SupernodeSpec enough_there = found->supernode;
        more_hbm = is_quick() ? bisected(enough_there, std::move(found), hbm_of) : std::move(found);
        return;
      }
    }
  }

  // Compiles the strategies that need least memory, with this policy.
  std::vector<SimulatedCandidate> compile_smallest(const Job& job, PlanMemory memory) const {
    const std::vector<Strategy> candidates = smallest_candidates(memory);
    std::vector<SimulatedCandidate> some(candidates.size());
    if (options_.progress)
      options_.progress(memory == PlanMemory::kNone ? "that need least are compiled"
                                                    : "that need least are compiled with transfers",
                        std::ssize(some));
    parallel_for(some.size(), [&](std::size_t i) {
      Strategy s = candidates[i];
      s.memory = memory;
      if (meets(options_.space->only, s)) some[i] = simulate_strategy(job, s, {});
    });
    return some;
  }

  // Strategies with the least forecast memory, and those that were refused, which may need less than their
  // bounds suggest.
  std::vector<Strategy> smallest_candidates(PlanMemory memory) const {
    const bool moves = memory != PlanMemory::kNone;
    const Limit limit = moves ? kSmallestOffloaded : kSmallest;
    std::vector<Strategy> list;
    std::int64_t passes = 0;
    const auto take = [&](const Strategy& s) {
      passes += layer_passes(base_, s);
      if (list.empty() || passes <= limit.passes) list.push_back(s);
    };
    for (const MemoryNeed& needs : failed_.smallest) {
      const bool may_be =
          !moves || needs.strategy.extra_recompute_layers == 0;  // offloading excludes extra recomputation
      if (may_be && list.size() < limit.candidates) take(needs.strategy);
    }
    if (moves) return list;
    for (const SimulatedCandidate& l : failed_.leaders) take(l.strategy);
    return list;
  }

  std::optional<ResourceRemedy> search_on(const SupernodeSpec& spec,
                                          SearchOptions options = {.leaders = 1}) const {
    Job job = base_;
    job.supernode = spec;
    const std::string pool = spec.pool.value > 0 ? " and a pool of " + to_string(spec.pool) : "";
    const std::string where =
        fmt::format("trying {} {} of {}{}", spec.devices, spec.devices == 1 ? "device" : "devices",
                    to_string(spec.hbm), pool);
    options.space = options_.space;
    options.most_offloaded_passes = kSmallestOffloaded.passes;
    options.refusals.hopeless = true;
    options.progress = within(options_.progress, where);
    const Search s = search(job, options);
    if (!s.found()) return std::nullopt;
    return ResourceRemedy{spec, s.leaders.front()};
  }

  const Job& base_;
  const Search& failed_;
  const NearestFeasibleOptions& options_;
};

}  // namespace

NearestFeasible nearest_feasible(const Job& base, const Search& failed,
                                 const NearestFeasibleOptions& options) {
  return FeasibleFinder(base, failed, options).run();
}

}  // namespace hyperrun

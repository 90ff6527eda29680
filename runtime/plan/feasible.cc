#include "runtime/plan/feasible.h"

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
// Of HBM or pool: more than any strategy takes.
constexpr Bytes kPlenty{std::int64_t{1} << 50};
// To compile large models takes long, to plan transfers longer: so many of the modest, and no more layers'
// passes in all, but one.
struct Share {
  std::size_t candidates;
  std::int64_t passes;
};
constexpr Share kModest{Bounds::kMostModest, kMostPasses / 4}, kModestMoved{4, kMostMovedPasses / 4};
// Of what is searched in a moment, and of few passes compiled in one, the least that does is bisected.
constexpr int kHalvings = 4;
constexpr std::int32_t kLeaders = 8;  // of what is told to do then

std::int32_t most_devices(const Job& base) {
  const std::int32_t of_machine = machine_of(base.supernode).devices;
  const std::int64_t doubled = std::int64_t{base.supernode.devices} << kDoublings;
  return static_cast<std::int32_t>(
      std::min<std::int64_t>({of_machine > 0 ? of_machine : doubled, doubled, 1 << 20}));
}

// Of weights and the optimizer, all devices together: each lies on one of them at least.
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

// What there may be more of.
using Figure = Bytes& (*)(SupernodeSpec&);
Bytes& hbm_of(SupernodeSpec& spec) { return spec.hbm; }
Bytes& pool_of(SupernodeSpec& spec) { return spec.pool; }

class Looking {
 public:
  Looking(const Job& base, const Search& failed, const FeasibleOptions& options)
      : base_(base), failed_(failed), options_(options) {}

  Feasible run() {
    Feasible feasible{.most_devices = base_.supernode.devices};
    const std::int32_t most = most_devices(base_);
    const Bytes state = state_of(base_);
    for (std::int64_t n = 2 * std::int64_t{base_.supernode.devices}; n <= most && !feasible.more_devices;
         n *= 2) {
      feasible.most_devices = static_cast<std::int32_t>(n);
      const SupernodeSpec spec = with_devices(base_, feasible.most_devices).supernode;
      const Bytes room = Bytes(spec.hbm.value * n) + (options_.space->may_offload() ? spec.pool : Bytes());
      if (state <= room) feasible.more_devices = tried(spec, {.leaders = 1, .unlikely = false});
    }
    if (feasible.more_devices && takes_a_moment())
      if (auto better = tried(with_devices(base_, feasible.most_devices).supernode, {.leaders = kLeaders}))
        feasible.more_devices = std::move(better);
    feasible.more_hbm = with_least(PlanMemory::kNone, hbm_of, [](const Leader& l) { return l.hbm; });
    const bool moves = options_.space->may_offload() && machine_of(base_.supernode).pool.exists();
    if (moves && pool_share(base_, *options_.space).value > 0) beside_the_pool(feasible.more_hbm);
    if (moves)
      feasible.more_pool =
          with_least(PlanMemory::kHyperOffload, pool_of, [](const Leader& l) { return l.pool; });
    return feasible;
  }

 private:
  bool takes_a_moment() const {
    return failed_.takes_a_moment(base_.model.layers) &&
           std::int64_t{base_.model.layers} * base_.training.batch <= kPassesInAMoment;
  }

  // With plenty of what `of` says the modest are compiled: as much as the least of them takes is enough.
  template <class Takes>
  std::optional<Remedy> with_least(PlanMemory memory, Figure of, Takes takes) const {
    Job plenty = base_;
    of(plenty.supernode) = kPlenty;
    std::vector<Leader> some = compiled(plenty, memory);
    std::erase_if(some, [](const Leader& l) { return l.simulated == 0; });
    if (some.empty()) return std::nullopt;
    const Bytes least = takes(*std::ranges::min_element(some, {}, takes));
    SupernodeSpec enough = base_.supernode;
    if (least <= of(enough)) return std::nullopt;  // that is not what is missing
    of(enough) = least;
    return takes_a_moment() ? bisected(enough, std::nullopt, of) : the_best(enough, of, 1);
  }

  // Of HBM: what moves nothing fits into what it takes.
  static Remedy as_little(Remedy remedy, Figure of) {
    const Leader& l = remedy.leader;
    if (of == Figure{hbm_of} && l.strategy.memory == PlanMemory::kNone) remedy.supernode.hbm = l.hbm;
    return remedy;
  }

  std::optional<Remedy> the_best(const SupernodeSpec& spec, Figure of, std::int32_t leaders) const {
    auto best = tried(spec, {.leaders = leaders});
    return best ? std::optional(as_little(std::move(*best), of)) : std::nullopt;
  }

  // Between what did not do and `enough`, with what was found of it: others may take less than those that are
  // forecast to.
  std::optional<Remedy> bisected(SupernodeSpec enough, std::optional<Remedy> found, Figure of) const {
    SupernodeSpec spec = base_.supernode;
    Bytes too_little = of(spec);
    const int halvings = too_little < of(enough) ? kHalvings : 0;
    for (int i = 0; i < halvings; ++i) {
      of(spec) = Bytes(std::midpoint(too_little.value, of(enough).value));
      if (auto less = the_best(spec, of, 1))
        enough = less->supernode, found = std::move(less);
      else
        too_little = of(spec);
    }
    auto best = the_best(enough, of, kLeaders);
    return best ? best : found;
  }

  // With the pool that there is less HBM may do: what does not fit is compiled for the least that does
  // (runtime/compile/choose_memory_plan.h).
  void beside_the_pool(std::optional<Remedy>& more_hbm) const {
    const std::vector<Leader> some = compiled(base_, PlanMemory::kHyperOffload);
    std::vector<Bytes> enough;
    for (const Leader& l : some)
      if (!l.fits && l.hbm > base_.supernode.hbm) enough.push_back(l.hbm);
    std::ranges::sort(enough);
    for (const Bytes hbm : enough) {
      if (more_hbm && hbm >= more_hbm->supernode.hbm) return;
      SupernodeSpec spec = base_.supernode;
      spec.hbm = hbm;
      if (auto found = the_best(spec, hbm_of, 1)) {
        const SupernodeSpec enough_there = found->supernode;
        more_hbm = takes_a_moment() ? bisected(enough_there, std::move(found), hbm_of) : std::move(found);
        return;
      }
    }
  }

  // The modest, with this policy.
  std::vector<Leader> compiled(const Job& job, PlanMemory memory) const {
    const std::vector<Strategy> candidates = modest(memory);
    std::vector<Leader> some(candidates.size());
    if (options_.progress)
      options_.progress(memory == PlanMemory::kNone ? "that need least are compiled"
                                                    : "that need least are compiled with transfers",
                        std::ssize(some));
    parallel_for(some.size(), [&](std::size_t i) {
      Strategy s = candidates[i];
      s.memory = memory;
      if (meets(options_.space->only, s)) some[i] = try_strategy(job, s, {});
    });
    return some;
  }

  // Those that need least by their forecasts; and what was refused, which may need less than its bound's
  // like.
  std::vector<Strategy> modest(PlanMemory memory) const {
    const bool moves = memory != PlanMemory::kNone;
    const Share share = moves ? kModestMoved : kModest;
    std::vector<Strategy> list;
    std::int64_t passes = 0;
    const auto take = [&](const Strategy& s) {
      passes += passes_of(base_, s);
      if (list.empty() || passes <= share.passes) list.push_back(s);
    };
    for (const Needs& needs : failed_.modest) {
      const bool may_be = !moves || needs.strategy.deeper == 0;  // it moves, or some layers recompute more
      if (may_be && list.size() < share.candidates) take(needs.strategy);
    }
    if (moves) return list;
    for (const Leader& l : failed_.leaders) take(l.strategy);
    return list;
  }

  std::optional<Remedy> tried(const SupernodeSpec& spec, SearchOptions options = {.leaders = 1}) const {
    Job job = base_;
    job.supernode = spec;
    const std::string pool = spec.pool.value > 0 ? " and a pool of " + to_string(spec.pool) : "";
    const std::string where = "trying " + std::to_string(spec.devices) +
                              (spec.devices == 1 ? " device of " : " devices of ") + to_string(spec.hbm) +
                              pool;
    options.space = options_.space;
    options.most_moved_passes = kModestMoved.passes;
    options.refusals.hopeless = true;
    options.progress = within(options_.progress, where);
    const Search s = search(job, options);
    if (!s.found()) return std::nullopt;
    return Remedy{spec, s.leaders.front()};
  }

  const Job& base_;
  const Search& failed_;
  const FeasibleOptions& options_;
};

}  // namespace

Feasible nearest_feasible(const Job& base, const Search& failed, const FeasibleOptions& options) {
  return Looking(base, failed, options).run();
}

}  // namespace hyperrun

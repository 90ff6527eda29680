// A cache of step profiles (layer_profile.h) for all strategies of a job. Sharding is slow, so strategies
// that differ only in sizes share a structure: one sharded graph of a model of few layers, with one set of
// axes and rules. It serves all axis sizes and micro-batches for which attention heads divide in the same
// way, as operators and collectives are then equal. Sizes that the shared graph does not divide by get a
// graph of their own. If the compiler refuses that, the strategy is illegal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "memory/host.h"
#include "runtime/cost/groups.h"
#include "runtime/ir/job.h"
#include "runtime/plan/layer_profile.h"
#include "runtime/plan/strategy.h"
#include "runtime/plan/topology_straddle.h"

namespace hyperrun {

// The sharded graph of a model of few layers without recomputation, and the strategy it was made for.
struct ShardedProbe {
  Strategy strategy;
  Graph graph;
};

class LayerProfileCache {
 public:
  // `base`: model, machine and batch. Its own strategy is ignored.
  explicit LayerProfileCache(const Job& base);
  ~LayerProfileCache();

  // Profile of a strategy. null if a tensor does not divide over its axes; why_not() tells which. The pointer
  // is valid as long as the cache.
  const StepProfile* profile(const Strategy& strategy);
  std::string why_not(const Strategy& strategy);

  // Profile without data axis and ZeRO, for closed_form_bound().
  const StepProfile* bound_profile(Strategy strategy);
  // The same if groups along `axis` are spread over two units of the machine, and all others are contiguous.
  // Its times are lower bounds as well.
  const StepProfile* bound_profile(Strategy strategy, const OutermostAxis& axis);

  // Sharded graphs and lowered steps, for any sizes.
  struct Structures;
  static std::size_t instr_count(const Structures& structures);
  // Replaces the structures by `others` (by none if null), which may come from another cache of the same job,
  // and returns the old ones. Profiles are dropped, locations of groups are kept.
  std::shared_ptr<Structures> swap_structures(std::shared_ptr<Structures> others = nullptr);

  // Mean time of a message from stage to stage, ns; 0 without a pipeline.
  double message_time(const Strategy& strategy, const StepProfile& profile);

  // Time for a byte of a very large collective over `ranks`, ns; no smaller collective is faster for a byte.
  // With `or_even`: or of a group of equal size with the same number of devices on each host, if that is
  // faster.
  double time_per_byte(instr::CollectiveKind kind, const std::vector<int>& ranks, bool or_even);
  bool is_spread_evenly(const std::vector<int>& ranks) { return location_of(ranks).shape.per_host > 0; }

  const Machine& machine() const { return machine_; }

  // Key of all structural choices of a strategy, without sizes: strategies with equal keys usually share a
  // structure. The length of a ring counts as structure. Stages do not count.
  std::string key_of_axes(const Strategy& strategy) const;
  // The same without data axis, stages, ZeRO, recomputation and placement of experts.
  std::string key_of_group(Strategy strategy) const;

 private:
  struct Structure;
  struct CachedProfile {
    bool divides = false;
    std::string why_not;
    StepProfile profile;
  };

  // Durations of a step's instructions, ns: for the slowest of their groups, and for contiguous groups.
  struct Durations {
    std::vector<double> as_placed, contiguous;
  };

  // Locations of the groups along some axes: the first group, one that straddles a unit of the machine, a
  // contiguous one, and even ones.
  struct Group {
    const Where *first = nullptr, *straddling = nullptr, *contiguous = nullptr;
    std::vector<const Where*> even = {};
  };

  CachedProfile& cached(const Strategy& strategy, const OutermostAxis* axis = nullptr);
  Structure& structure_of(const Strategy& strategy);
  Structure& sharded(const std::string& key, const Strategy& strategy);
  static std::string key_of_graph(const std::string& whole_key);
  // The graph stored under the key, or a new one.
  std::shared_ptr<const ShardedProbe> sharded_graph(const std::string& key, const Strategy& strategy);
  std::string structure_key(const Strategy& strategy) const;
  CachedProfile compute_profile(const Strategy& strategy, const OutermostAxis* axis);
  Durations durations_of(const ParametricStep& step, const Strategy& strategy, const OutermostAxis* axis);
  const Group& group_along(const Strategy& strategy, const Mesh& mesh, const AxisList& axes,
                           const OutermostAxis* axis);
  Group group_along(const Mesh& mesh, const AxisList& axes);
  // `axis`: the outermost axis, as an axis of `mesh`.
  Group group_along(const Mesh& mesh, const AxisList& axes, AxisId axis, const OutermostAxis& outermost);
  const Where& location_of(const std::vector<int>& ranks);
  // For ranks on several hosts with unequal numbers: locations of groups of equal size with the same number
  // on each host, as another axis order may have them. An all-reduce is then hierarchical and may be faster.
  std::vector<const Where*> even_locations(const std::vector<int>& ranks);
  // `last_of_first`: the highest rank of the first group.
  std::vector<int> straddling_group(const Mesh& mesh, const AxisList& axes, int last_of_first) const;

  Job base_;
  Machine machine_;
  std::vector<int> kind_of_;  // kind of each layer of the probe
  std::shared_ptr<Structures> known_;
  std::unordered_map<std::string, CachedProfile> profiles_;
  Topology topology_;                            // topology of all devices
  std::map<std::vector<int>, Where> locations_;  // by ranks
  std::unordered_map<std::string, Group> groups_;
  // Message time, ns, by the first device of the second and of the last stage and the bytes of a message.
  std::map<std::tuple<int, int, std::int64_t>, double> message_times_;
};

// The strategy without stages, with its axes in a canonical order for which the compiler makes the same
// graph. The relative order of ring, context and tensor axes matters to the compiler, so it is kept.
Strategy as_sharded(Strategy strategy);
// The job of few layers that stands for `base` under the strategy, without stages.
Job probe_job(const Job& base, const Strategy& strategy);
// Kind of each layer of the probe job; all 0 if there is one kind.
std::vector<int> probe_kinds(const ModelSpec& model);

}  // namespace hyperrun

#include "runtime/plan/layer_profile_cache.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <ranges>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/recompute.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/kernel_costs.h"
#include "runtime/plan/zero_sharding.h"

namespace hyperrun {
namespace {

constexpr std::size_t kLike = 2;    // layers of a kind, so that each pass is followed by one of its kind
constexpr std::size_t kBefore = 2;  // dense layers before those with experts

void append(std::string& key, std::int32_t n) { key.append(reinterpret_cast<const char*>(&n), sizeof n); }

// If the pipeline is the slowest axis, the other axes lie as they would without it.
Strategy without_slowest_stages(Strategy s) {
  const auto slowest = std::ranges::find_if(s.order, [&](PlanAxis a) { return s[a] > 1; });
  if (slowest != s.order.end() && *slowest == PlanAxis::kPipeline) s[PlanAxis::kPipeline] = 1;
  return s;
}

void append_sizes(std::string& key, const Strategy& s) {
  for (const PlanAxis a : s.order)
    if (s[a] > 1) key += static_cast<char>(a), append(key, s[a]);
}

void append(std::string& key, const OutermostAxis* axis) {
  key += axis == nullptr ? '-' : 'o';
  if (axis == nullptr) return;
  for (const int n : {static_cast<int>(axis->axis), axis->stride, axis->begin, axis->unit}) append(key, n);
}

std::string key_of(const Strategy& s) {
  std::string key;
  append_sizes(key, s);
  for (const std::int32_t n :
       {s.zero, s.samples, static_cast<std::int32_t>(s.experts), static_cast<std::int32_t>(s.recompute)})
    append(key, n);
  return key;
}

// Which combinations of axes divide `heads`.
void append_division(std::string& key, const Strategy& s, std::int32_t heads) {
  const std::int64_t width = s[PlanAxis::kTensor];
  for (const std::int64_t parts : {width * s[PlanAxis::kContext], width * s[PlanAxis::kTensorY],
                                   width * s[PlanAxis::kContext] * s[PlanAxis::kTensorY]})
    key += heads % parts == 0 ? 'y' : 'n';
}

// Which widths of weights ZeRO can split over these sizes.
void append_splits(std::string& key, const Strategy& s, const ModelSpec& model) {
  key += splits_at_once(s, model, Widths::kOne) ? 'y' : 'n';
  for (const PlanAxis axis : kTokenAxes) key += splits_along(s, model, axis) ? 'y' : 'n';
  const std::int64_t parts = std::int64_t{s.zero_devices()} * s[PlanAxis::kTensor] * s[PlanAxis::kTensorY];
  const ExpertsSpec& experts = model.experts;
  for (const std::int64_t width : {model.ffn, experts.ffn, experts.ffn * experts.shared, model.latent.q_rank,
                                   model.latent.kv_rank, model.vocab})
    key += width % parts == 0 ? 'y' : 'n';
}

// Equality of graphs apart from sizes.
bool are_alike(const Graph& a, const Graph& b) {
  const auto same = [](const Node& m, const Node& n) {
    return m.op == n.op && m.inputs == n.inputs && m.outputs == n.outputs && m.addend == n.addend;
  };
  return a.layouts == b.layouts && std::ranges::equal(a.nodes, b.nodes, same);
}

// Key for the placement of a group: counts and strides of its axes. Axes that continue each other are merged.
std::string key_of_places(const Mesh& mesh, const AxisList& axes) {
  struct Steps {
    std::int64_t count, stride;
  };
  std::vector<Steps> steps;
  for (const AxisId a : axes) {
    std::int64_t stride = 1;
    for (AxisId b = a + 1; b < mesh.rank(); ++b) stride *= mesh.size(b);
    if (!steps.empty() && steps.back().stride == mesh.size(a) * stride)
      steps.back() = {steps.back().count * mesh.size(a), stride};
    else
      steps.push_back({mesh.size(a), stride});
  }
  std::string key;
  for (const Steps& s : steps)
    append(key, static_cast<std::int32_t>(s.count)), append(key, static_cast<std::int32_t>(s.stride));
  return key;
}

// The same axes in a mesh that has more of them.
AxisList in_mesh(const Mesh& mesh, const Mesh& part, const AxisList& axes) {
  AxisList list;
  for (const AxisId a : axes) list.push_back(mesh.find(part.axes[static_cast<std::size_t>(a)].name));
  return list;
}

}  // namespace

struct LayerProfileCache::Structure {
  std::string why_not;  // the compiler's refusal; else empty
  std::shared_ptr<const ShardedProbe> probe;
  std::optional<ParametricStep> step;
  std::optional<ProfileExtractor> outline;
};

struct LayerProfileCache::Structures {
  std::unordered_map<std::string, std::shared_ptr<Structure>> by_key;
  // Each structure once, by its axes. Sizes that lead to the same structure share it.
  std::unordered_map<std::string, std::vector<std::shared_ptr<Structure>>> by_axes;
  std::unordered_map<std::string, std::shared_ptr<const ShardedProbe>> graphs;
};

std::size_t LayerProfileCache::instr_count(const Structures& structures) {
  std::size_t n = 0;
  for (const auto& [_, list] : structures.by_axes)
    for (const auto& structure : list) n += structure->step->original_instrs();
  return n;
}

std::vector<int> probe_kinds(const ModelSpec& model) {
  std::vector<int> kinds;
  if (model.experts.count > 0 && model.experts.dense_layers > 0) {
    kinds.assign(kBefore, 0);
    kinds.insert(kinds.end(), kLike, 1);
  } else {
    kinds.assign(kLike, 0);
  }
  return kinds;
}

Strategy as_sharded(Strategy s) {
  s[PlanAxis::kPipeline] = 1;
  std::ranges::stable_sort(s.order, {}, [](PlanAxis a) { return std::min(a, PlanAxis::kRing); });
  return s;
}

Job probe_job(const Job& base, const Strategy& strategy) {
  Job small = base;
  small.model.layers = static_cast<std::int32_t>(probe_kinds(base.model).size());
  if (small.model.experts.dense_layers > 0) small.model.experts.dense_layers = kBefore;
  small.training.batch = strategy.samples * strategy.replicas() * kProbeMicroBatches;
  // The small model has no stages of its own: uneven stages would shift which of its layers recompute.
  Strategy alike = strategy;
  alike.chunks = 1;
  alike.first_stage_shortfall = alike.last_stage_shortfall = alike.extra_recompute_layers = 0;
  Job job = job_of(small, alike);
  job.parallel.pipeline = {};
  return job;
}

LayerProfileCache::LayerProfileCache(const Job& base)
    : base_(base),
      machine_(machine_of(base.supernode)),
      kind_of_(probe_kinds(base.model)),
      known_(std::make_shared<Structures>()),
      topology_(hosts_of(machine_, base.supernode.devices)) {}
LayerProfileCache::~LayerProfileCache() = default;

const StepProfile* LayerProfileCache::profile(const Strategy& strategy) {
  const CachedProfile& p = cached(strategy);
  return p.divides ? &p.profile : nullptr;
}

const StepProfile* LayerProfileCache::bound_profile(Strategy strategy) {
  strategy[PlanAxis::kData] = strategy[PlanAxis::kPipeline] = 1;
  strategy.zero = 0;
  return profile(strategy);
}

const StepProfile* LayerProfileCache::bound_profile(Strategy strategy, const OutermostAxis& axis) {
  strategy[PlanAxis::kData] = strategy[PlanAxis::kPipeline] = 1;
  strategy.zero = 0;
  const CachedProfile& p = cached(strategy, strategy[axis.axis] > 1 ? &axis : nullptr);
  return p.divides ? &p.profile : nullptr;
}

std::shared_ptr<LayerProfileCache::Structures> LayerProfileCache::swap_structures(
    std::shared_ptr<Structures> others) {
  profiles_.clear();
  return std::exchange(known_, others ? std::move(others) : std::make_shared<Structures>());
}

// Mean over the messages of one pipeline group: some cross a supernode, others do not.
double LayerProfileCache::message_time(const Strategy& strategy, const StepProfile& profile) {
  if (strategy[PlanAxis::kPipeline] == 1) return 0;
  const Mesh mesh{mesh_of(strategy)};
  const AxisList axes{mesh.find("pp")};
  const std::vector<int> stages = mesh.group(0, axes);
  const auto [known, is_new] = message_times_.try_emplace({stages[1], stages.back(), profile.message});
  if (!is_new) return known->second;
  instr::Collective message{};
  message.kind = instr::CollectiveKind::kRecv;  // a receive takes the time of the message
  message.axes = axes;
  message.peer = 1;
  message.dtype = DType::kBF16;
  message.inner = profile.message / size_of(message.dtype);
  for (std::size_t s = 1; s < stages.size(); ++s)
    known->second += collective_cost(message, location_of({stages[s - 1], stages[s]}), machine_).nanos();
  return known->second /= static_cast<double>(stages.size() - 1);
}

// Groups along the same axes are placed alike, unless a unit of the machine ends inside one of them. Returns
// such a group if the first group is not one; else an empty list.
std::vector<int> LayerProfileCache::straddling_group(const Mesh& mesh, const AxisList& axes,
                                                     int last_of_first) const {
  // Devices from the first to the last member of a group, and to the next set of groups.
  std::int64_t spread = 1;
  for (AxisId a = *std::ranges::min_element(axes); a < mesh.rank(); ++a) spread *= mesh.size(a);
  for (const Level& level : machine_.levels | std::views::reverse | std::views::drop(1)) {
    const std::int64_t unit = level.devices, begin = unit / spread * spread;
    if (last_of_first >= unit || unit % spread == 0 || begin + spread > base_.supernode.devices) continue;
    for (const std::int64_t device : {unit - begin, unit - begin - 1}) {
      std::vector<int> ranks = mesh.group(device, axes);
      for (int& r : ranks) r += static_cast<int>(begin);
      const auto [least, most] = std::ranges::minmax(ranks);
      if (least < unit && most >= unit) return ranks;
    }
  }
  return {};
}

const Where& LayerProfileCache::location_of(const std::vector<int>& ranks) {
  const auto [it, is_new] = locations_.try_emplace(ranks);
  if (is_new) it->second = where_of(ranks, topology_, machine_);
  return it->second;
}

std::string LayerProfileCache::why_not(const Strategy& strategy) { return cached(strategy).why_not; }

LayerProfileCache::CachedProfile& LayerProfileCache::cached(const Strategy& strategy,
                                                            const OutermostAxis* axis) {
  Strategy alone = without_slowest_stages(strategy);
  alone.extra_recompute_layers = 0;
  std::string key = key_of(alone);
  append(key, axis);
  const auto [it, is_new] = profiles_.try_emplace(std::move(key));
  if (is_new) it->second = compute_profile(alone, axis);
  return it->second;
}

// The compiler chooses the cheapest exchange by sizes. It depends on both tensor sizes in two dimensions (for
// latent attention on the micro-batch as well), on the axes that split query heads further than key-value
// heads, and on what ZeRO can split. These sizes are part of the key.
std::string LayerProfileCache::structure_key(const Strategy& s) const {
  std::string key;
  const std::int32_t width = s[PlanAxis::kTensor], context = s[PlanAxis::kContext];
  if (width > 1 && s[PlanAxis::kTensorY] > 1) {
    append(key, width), append(key, s[PlanAxis::kTensorY]);
    if (base_.model.latent.kv_rank > 0) append(key, s.samples * s.replicas());
  }
  if (context > 1 && base_.model.kv_heads % (width * context) != 0) append(key, width), append(key, context);
  if (s.zero > 0) append_splits(key, s, base_.model);
  return key + key_of_axes(s);
}

std::string LayerProfileCache::key_of_axes(const Strategy& s) const {
  std::string key;
  for (const PlanAxis a : s.order)
    if (s[a] > 1 && a != PlanAxis::kPipeline) key += static_cast<char>(a);
  append_division(key, s, base_.model.kv_heads);
  append_division(key, s, base_.model.heads);
  for (const std::int32_t n : {s[PlanAxis::kRing], s.zero, static_cast<std::int32_t>(s.experts),
                               static_cast<std::int32_t>(s.recompute)})
    append(key, n);
  return key;
}

std::string LayerProfileCache::key_of_group(Strategy s) const {
  s[PlanAxis::kData] = s[PlanAxis::kPipeline] = 1;
  s.zero = 0, s.recompute = PlanRecompute::kNone, s.experts = PlanExperts::kRepeated;
  return key_of_axes(s);
}

// The last part of the key is recomputation, which does not change the sharded graph.
std::string LayerProfileCache::key_of_graph(const std::string& whole_key) {
  return whole_key.substr(0, whole_key.size() - sizeof(std::int32_t));
}

std::shared_ptr<const ShardedProbe> LayerProfileCache::sharded_graph(const std::string& key,
                                                                     const Strategy& strategy) {
  if (const auto known = known_->graphs.find(key); known != known_->graphs.end()) return known->second;
  Strategy kept = strategy;
  kept.recompute = PlanRecompute::kNone;
  return std::make_shared<const ShardedProbe>(ShardedProbe{kept, sharded_training(probe_job(base_, kept))});
}

LayerProfileCache::Structure& LayerProfileCache::sharded(const std::string& key, const Strategy& strategy) {
  std::shared_ptr<Structure>& structure = known_->by_key[key];
  if (structure) return *structure;
  structure = std::make_shared<Structure>();
  try {
    const std::string graph_key = key_of_graph(key);
    structure->probe = sharded_graph(graph_key, strategy);
    auto& others = known_->by_axes[key_of_axes(strategy)];
    const auto alike = std::ranges::find_if(others, [&](const std::shared_ptr<Structure>& s) {
      return s->probe == structure->probe || are_alike(s->probe->graph, structure->probe->graph);
    });
    const bool is_known = alike != others.end();
    if (is_known) structure = *alike;
    known_->graphs.try_emplace(graph_key, structure->probe);
    if (is_known) return *structure;
    Graph graph = structure->probe->graph;
    recompute(graph, probe_job(base_, strategy).training.recompute);
    structure->step.emplace(std::move(graph), Mesh{mesh_of(structure->probe->strategy)}, kProbeMicroBatches,
                            machine_.fuses());
    structure->outline.emplace(*structure->step, kind_of_);
    structure->step->freeze();
    others.push_back(structure);
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
    structure->why_not = e.cause();
  }
  return *structure;
}

LayerProfileCache::Structure& LayerProfileCache::structure_of(const Strategy& strategy) {
  const std::string key = structure_key(strategy);
  const Mesh mesh{mesh_of(strategy)};
  const auto serves = [&](const Structure& s) {
    return s.step && s.step->divides(mesh, std::int64_t{strategy.samples} * strategy.replicas());
  };
  Structure& common = sharded(key, strategy);
  if (serves(common)) return common;
  std::string sizes, samples;
  append_sizes(sizes, strategy);
  append(samples, strategy.samples);
  Structure& of_sizes = sharded(sizes + key, strategy);
  // A refusal is due to the axes, as the batch always divides.
  if (!of_sizes.step || serves(of_sizes)) return of_sizes;
  return sharded(samples + sizes + key, strategy);
}

LayerProfileCache::CachedProfile LayerProfileCache::compute_profile(const Strategy& with_stages,
                                                                    const OutermostAxis* axis) {
  CachedProfile cached;
  const Strategy strategy = as_sharded(with_stages);
  Structure& structure = structure_of(strategy);
  cached.why_not = structure.why_not;
  if (!cached.why_not.empty()) return cached;
  ParametricStep& step = *structure.step;
  step.resize(Mesh{mesh_of(strategy)}, std::int64_t{strategy.samples} * strategy.replicas());
  const Durations durations = durations_of(step, with_stages, axis);
  cached.profile = structure.outline->profile(durations.as_placed, durations.contiguous);
  cached.divides = true;
  return cached;
}

const LayerProfileCache::Group& LayerProfileCache::group_along(const Strategy& strategy, const Mesh& mesh,
                                                               const AxisList& axes,
                                                               const OutermostAxis* axis) {
  if (axis == nullptr) {
    const auto [known, is_new] = groups_.try_emplace(key_of_places(mesh, axes));
    if (is_new) known->second = group_along(mesh, axes);
    return known->second;
  }
  const AxisId slow = mesh.find(axis_name(strategy, axis->axis));
  const bool is_along = std::ranges::find(axes, slow) != axes.end();
  std::string key;
  append(key, axis);
  append(key, static_cast<std::int32_t>(mesh.size(axes)));
  append(key, is_along ? static_cast<std::int32_t>(mesh.size(slow)) : 1);
  const auto [known, is_new] = groups_.try_emplace(std::move(key));
  if (is_new) known->second = group_along(mesh, axes, slow, *axis);
  return known->second;
}

LayerProfileCache::Group LayerProfileCache::group_along(const Mesh& mesh, const AxisList& axes) {
  Group group;
  std::vector<int> ranks = mesh.group(0, axes);
  group.first = &location_of(ranks);
  if (const std::vector<int> other = straddling_group(mesh, axes, std::ranges::max(ranks)); !other.empty())
    group.straddling = &location_of(other);
  std::iota(ranks.begin(), ranks.end(), 0);
  group.contiguous = &location_of(ranks);
  group.even = even_locations(ranks);
  return group;
}

LayerProfileCache::Group LayerProfileCache::group_along(const Mesh& mesh, const AxisList& axes, AxisId axis,
                                                        const OutermostAxis& outermost) {
  const auto devices = static_cast<int>(mesh.size(axes));
  std::vector<int> ranks(static_cast<std::size_t>(devices));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (std::ranges::find(axes, axis) != axes.end()) {
    const auto size = static_cast<int>(mesh.size(axis));
    ranks = ranks_along(outermost, size, devices / size);
  }
  const Where& where = location_of(ranks);
  return {&where, nullptr, &where, even_locations(ranks)};
}

std::vector<const Where*> LayerProfileCache::even_locations(const std::vector<int>& ranks) {
  if (is_spread_evenly(ranks)) return {};
  const int of_host = static_cast<int>(machine_.devices_of_a_host()), devices = base_.supernode.devices;
  const int count = static_cast<int>(ranks.size());
  std::vector<const Where*> ways;
  for (int each = 1; each <= std::min(of_host, count / 2); ++each) {
    if (count % each != 0 || (count / each - 1) * of_host + each > devices) continue;
    std::vector<int> even;
    for (int r = 0; r < count; ++r) even.push_back(r / each * of_host + r % each);
    ways.push_back(&location_of(even));
  }
  return ways;
}

LayerProfileCache::Durations LayerProfileCache::durations_of(const ParametricStep& step,
                                                             const Strategy& strategy,
                                                             const OutermostAxis* axis) {
  const Program& program = step.program();
  const Mesh mesh{mesh_of(strategy)};
  std::vector<double> slowest, least;
  KernelCosts costs(program, machine_);
  std::map<AxisList, const Group*> groups;
  for (std::size_t k = 0; k < program.instrs.size(); ++k) {
    const auto* c = std::get_if<instr::Collective>(&program.instrs[k].op);
    if (c == nullptr) {
      slowest.push_back(static_cast<double>(costs.computing(k).value));
      least.push_back(slowest.back());
      continue;
    }
    const Group*& group = groups[c->axes];
    if (group == nullptr) group = &group_along(strategy, mesh, in_mesh(mesh, program.mesh, c->axes), axis);
    const auto lasts = [&](const Where& where) { return static_cast<double>(costs.meeting(k, where).value); };
    slowest.push_back(lasts(*group->first));
    least.push_back(std::min(slowest.back(), lasts(*group->contiguous)));
    if (c->kind == instr::CollectiveKind::kAllReduce)
      for (const Where* where : group->even) least.back() = std::min(least.back(), lasts(*where));
    if (group->straddling != nullptr) slowest.back() = std::max(slowest.back(), lasts(*group->straddling));
  }
  Durations d;
  d.as_placed.reserve(step.original_instrs()), d.contiguous.reserve(step.original_instrs());
  for (std::size_t i = 0; i < step.original_instrs(); ++i)
    d.as_placed.push_back(slowest[step.representative(i)]),
        d.contiguous.push_back(least[step.representative(i)]);
  return d;
}

double LayerProfileCache::time_per_byte(instr::CollectiveKind kind, const std::vector<int>& ranks,
                                        bool or_even) {
  constexpr std::int64_t kVeryMany = std::int64_t{1} << 40;
  instr::Collective c{};
  c.kind = kind;
  c.dtype = DType::kF32;
  c.outer = 1;
  const auto parts = kind == instr::CollectiveKind::kAllReduce ? 1 : std::ssize(ranks);
  c.inner = kVeryMany / size_of(c.dtype) / parts;
  const auto of = [&](const Where& where) {
    const CollectiveCost cost = collective_cost(c, where, machine_);
    return cost.transfer / cost.bytes;
  };
  double least = of(location_of(ranks));
  if (or_even && kind == instr::CollectiveKind::kAllReduce)
    for (const Where* where : even_locations(ranks)) least = std::min(least, of(*where));
  return least;
}

}  // namespace hyperrun

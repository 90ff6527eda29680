#include "runtime/cost/cost.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "runtime/base/error.h"
#include "runtime/base/overloaded.h"
#include "runtime/cost/kernel_shape.h"
#include "runtime/ir/collective_args.h"
#include "runtime/ir/score_pairs.h"
#include "runtime/ir/touched.h"

namespace hyperrun {
namespace {

constexpr double kNanosPerSecond = 1e9;

// Accounts for attention that writes its scores. It computes the masked ones as well: `masked` times as many
// as are needed. Its backward pass need not compute the scores again: four products instead of five (or of
// five halves with a causal mask).
void write_scores(double heads, double scores_of_a_head, double masked, bool backward, const Scores& s,
                  ComputeCost& cost) {
  if (s.forward.value == 0) return;
  const bool together = s.together(heads);
  const Figure& bytes =
      backward ? (together ? s.backward : s.backward_apart) : (together ? s.forward : s.forward_apart);
  cost.score_bytes = heads * scores_of_a_head * bytes.value;
  cost.flops *= (backward ? 4.0 / 5 : 1) * masked;
}

void set_tiles(const Product& product, const Machine& machine, ComputeCost& cost) {
  cost.tiling = tiling(product, machine, cost.rate->value, cost.traffic() / kNanosPerSecond);
  cost.depth = cost.tiling.depth;
  cost.depth_curve = &machine.products;
  cost.tiles = &machine.tiles;
}

double blocks_of_rows(const Instr& instr) {
  return static_cast<double>(std::max<std::int64_t>(1, tile_of(instr).blocks));
}

// The single product that a group of products amounts to: one operand times several, or one sum of several.
// `joined`: gradients of weights that are one have more rows.
Product joined_product(std::span<const Instr* const> kernel, bool joined) {
  const auto& first = std::get<instr::Gemm>(kernel.front()->op);
  Product p{static_cast<double>(first.m), static_cast<double>(first.n), static_cast<double>(first.k),
            blocks_of_rows(*kernel.front())};
  const bool summed = kernel.front()->out[0].buffer == kernel.back()->out[0].buffer;
  const bool rows = joined && first.trans_a;
  for (const Instr* other : kernel.subspan(1)) {
    const auto& o = std::get<instr::Gemm>(other->op);
    (summed ? p.k : rows ? p.m : p.n) += static_cast<double>(summed ? o.k : rows ? o.m : o.n);
  }
  return p;
}

// HBM traffic of a fusion group.
double traffic_of(std::span<const Instr* const> kernel, const Mesh& mesh) {
  std::map<std::pair<std::int32_t, std::int64_t>, std::pair<bool, bool>> used;  // read, written
  double bytes = 0;
  for (const Instr* instr : kernel) {
    const auto of = [&](const Operand& o, bool write) {
      return static_cast<double>(touched(*instr, o, write, mesh).value);
    };
    each_use(*instr, [&](const Operand& o, bool read, bool write) {
      auto& [was_read, was_written] = used[{o.buffer.value, o.offset.value}];
      if (read && !was_read && !was_written) was_read = true, bytes += of(o, false);
      if (write && !was_written) was_written = true, bytes += of(o, true);
    });
  }
  return bytes;
}

// Sets the share of the cube's peak that an instruction reaches.
void set_efficiency(const Instr& instr, const Mesh& mesh, const Machine& machine, ComputeCost& cost) {
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const Product p{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k),
                    blocks_of_rows(instr)};
    set_tiles(p, machine, cost);
  };
  const auto attention = [&](const auto& o, bool backward = false) {
    // A query meets as many keys without a mask as it does on average in a causal sequence of twice the
    // length, and with a window as few as in a shorter one.
    const auto seq = static_cast<double>(o.seq), pairs = static_cast<double>(double_pairs_of(o, mesh));
    cost.depth = machine.attention.at(std::max(1.0, pairs / seq));
    cost.depth_curve = &machine.attention;
    write_scores(static_cast<double>(o.batch * o.kv_heads * o.group), seq * seq,
                 pairs > 0 ? 2 * seq * seq / pairs : 1, backward, machine.scores, cost);
  };
  std::visit(Overloaded{
                 [&](const instr::Gemm& o) { product(o.m, o.n, o.k); },
                 [&](const instr::GroupedGemm& o) { product(o.rows, o.n, o.k); },
                 [&](const instr::GroupedOuter& o) {
                   const std::int64_t groups = groups_in(tile_of(instr), o.groups);
                   product(o.m * groups, o.n, o.rows / groups);
                 },
                 [&](const instr::Attention& o) { attention(o); },
                 [&](const instr::AttentionGrad& o) { attention(o, true); },
                 // Each query meets all keys of the context.
                 [&](const instr::CachedAttention& o) {
                   cost.depth = machine.attention.at(
                       static_cast<double>(o.window > 0 ? std::min(o.context, o.window) : o.context));
                   cost.depth_curve = &machine.attention;
                 },
                 [&](const instr::AttentionStep& o) { attention(o); },
                 [&](const instr::AttentionStepGrad& o) { attention(o, true); },
                 [](const auto&) {},
             },
             instr.op);
}

// Replaces efficiencies by what was measured for the kernel, if the machine's table knows it. The table is of
// 16-bit operands.
void take_measured(std::span<const Instr* const> kernel, const Machine& machine, ComputeCost& cost) {
  if (machine.kernels.empty() || kernel.front()->in.empty()) return;
  const std::optional<KernelShape> shape = kernel_shape(kernel);
  if (!shape) return;
  const bool of_memory = size_names(shape->kernel).empty();
  if (!of_memory && kernel.front()->in.front().dtype != DType::kBF16) return;
  const std::optional<double> share = machine.kernels.share(*shape);
  if (!share) return;
  cost.table = &machine.kernels;
  cost.by_memory = of_memory;
  (of_memory ? cost.memory : cost.depth) = *share;
  if (!of_memory) cost.tiling = {};
}

bool reduces(Collective kind) { return kind == Collective::kAllReduce || kind == Collective::kReduceScatter; }

// The efficiency that a level has for one kind of collective by itself; null if it has none.
const OwnEfficiency* own_efficiency(const Level& level, Collective kind) {
  const OwnEfficiency* own = kind == Collective::kAllReduce       ? &level.all_reduce
                             : kind == Collective::kReduceScatter ? &level.reduce_scatter
                             : kind == Collective::kAllGather     ? &level.all_gather
                             : kind == Collective::kAllToAll      ? &level.all_to_all
                                                                  : nullptr;
  return own != nullptr && own->is_given() ? own : nullptr;
}

// A device's share of a level. In a ring one member of a unit sends to the next unit, otherwise all members
// do.
CollectiveCost::Link link(const Level& level, const Reach::Unit& unit, bool ring, double bytes,
                          Collective kind, const Machine& machine) {
  const auto senders = static_cast<double>(unit.below) / static_cast<double>(ring ? unit.members_below : 1);
  const double links =
      level.mesh ? static_cast<double>(unit.members - 1) / static_cast<double>(level.devices - 1) : 1;
  const double own = level.bandwidth.value * links;
  const double share = level.shared.value > 0 ? level.shared.value / senders : own;
  const OwnEfficiency* of_kind = own_efficiency(level, kind);
  CollectiveCost::Link link{&level, {}, std::min(own, share)};
  link.efficiency = of_kind != nullptr ? of_kind->efficiency().at(bytes) : level.efficiency.at(bytes);
  link.ceiling = of_kind != nullptr ? &of_kind->ceiling : &level.efficiency.ceiling;
  link.half = of_kind != nullptr ? &of_kind->half : &level.efficiency.half;
  // An efficiency of one kind is measured with its sums.
  const double summing = of_kind != nullptr ? 0 : kReduceTraffic;
  link.cost = {.alpha = level.latency.value,
               .beta = kNanosPerSecond / (link.rate * link.efficiency),
               .gamma = summing * kNanosPerSecond / machine.hbm_bandwidth.value};
  return link;
}

}  // namespace

double ComputeCost::arithmetic() const {
  return flops > 0 ? flops / (rate->value * tiling.share * depth) * kNanosPerSecond : 0;
}

double ComputeCost::traffic() const {
  return bytes > 0 ? bytes / (bandwidth->value * memory) * kNanosPerSecond : 0;
}

double ComputeCost::score_traffic() const {
  return score_bytes / (bandwidth->value * memory) * kNanosPerSecond;
}

double ComputeCost::partial_traffic() const {
  return tiling.partial_bytes / (bandwidth->value * memory) * kNanosPerSecond;
}

double ComputeCost::nanos() const {
  return launch->value + std::max(arithmetic(), traffic()) + score_traffic() + partial_traffic();
}

ComputeCost compute_cost(const Instr& instr, const Mesh& mesh, const Machine& machine) {
  const Work w = work(instr, mesh);
  const bool cube = instr.stream == StreamKind::kCube;
  const DType type = instr.in.empty() ? DType::kF32 : instr.in.front().dtype;
  ComputeCost cost{cube ? &machine.launch_cube : &machine.launch_vector,
                   cube ? &machine.cube.of(type) : &machine.vector, &machine.hbm_bandwidth};
  cost.flops = static_cast<double>(w.flops.value);
  cost.bytes = static_cast<double>(w.hbm.value);
  cost.memory = machine.memory.at(cost.bytes);
  cost.memory_curve = &machine.memory;
  if (cube) set_efficiency(instr, mesh, machine, cost);
  const Instr* const alone = &instr;
  take_measured({&alone, 1}, machine, cost);
  return cost;
}

ComputeCost compute_cost(std::span<const Instr* const> kernel, const Mesh& mesh, const Machine& machine) {
  ComputeCost cost = compute_cost(*kernel.front(), mesh, machine);
  if (kernel.size() == 1) return cost;
  cost.flops = 0;
  for (const Instr* instr : kernel) cost.flops += static_cast<double>(work(*instr, mesh).flops.value);
  cost.bytes = traffic_of(kernel, mesh);
  cost.memory = machine.memory.at(cost.bytes);
  cost.memory_curve = &machine.memory;
  if (std::holds_alternative<instr::Gemm>(kernel.front()->op))
    set_tiles(joined_product(kernel, machine.joins()), machine, cost);
  take_measured(kernel, machine, cost);
  return cost;
}

Algorithm algorithm_on(const Machine& machine, const CollectiveArgs& args, const Where& where) {
  constexpr std::int64_t kLatencyBytes = 65536;  // for smaller data, fewer steps beat the ring
  const bool large = elements(args, where.shape.p) * size_of(args.dtype) > kLatencyBytes;
  const bool ring = where.shape.hosts > 1 && args.kind == Collective::kAllReduce && large &&
                    machine.levels[static_cast<std::size_t>(where.reach.between)].ring;
  return ring ? Algorithm::kRing : select(args, where.shape);
}

CollectiveCost collective_cost(const instr::Collective& c, const Where& where, const Machine& machine) {
  const CollectiveArgs args = collective_args(c, where.shape.p);
  CollectiveCost cost{&machine.launch_comm, algorithm_on(machine, args, where), where.shape.p};
  cost.bytes = static_cast<double>(elements(args, where.shape.p) * size_of(args.dtype));
  if (reduces(args.kind)) cost.summing = &machine.hbm_bandwidth;
  const bool ring = cost.algorithm == Algorithm::kRing;
  const auto over = [&](int level, const Reach::Unit& unit) {
    return link(machine.levels[static_cast<std::size_t>(level)], unit, ring, cost.bytes, args.kind, machine);
  };
  cost.inside = over(where.reach.inside, where.reach.inside_unit);
  cost.between = over(where.reach.between, where.reach.between_unit);
  if (cost.inside.cost.gamma == 0 && cost.between.cost.gamma == 0) cost.summing = nullptr;
  cost.transfer =
      static_cast<double>(time(args, cost.algorithm, where.shape, cost.inside.cost, cost.between.cost).value);
  return cost;
}

CollectiveCost fetch_cost(const instr::Fetch& fetch, const Operand& out, const Machine& machine) {
  instr::Collective message;
  message.kind = instr::CollectiveKind::kRecv;
  message.dtype = out.dtype;
  message.inner = 1;
  for (const std::int64_t size : fetch.size) message.inner *= size;
  std::vector<int> pair{std::min(fetch.from_rank, fetch.to_rank), std::max(fetch.from_rank, fetch.to_rank)};
  if (pair[0] == pair[1]) pair = {0, 1};
  return collective_cost(message, where_of(pair, hosts_of(machine, pair[1] + 1), machine), machine);
}

double TransferCost::nanos() const {
  return storage->latency.value + bytes / (rate * efficiency) * kNanosPerSecond;
}

TransferCost transfer_cost(Bytes bytes, Tier tier, const Machine& machine) {
  const Storage& storage = machine.storage(tier);
  if (!storage.exists())
    throw Error(Code::kBadValue, "the profile \"" + machine.name + "\" has no " + std::string(name(tier)))
        .at("supernode.profile")
        .legal("a profile whose device has a block \"" + std::string(name(tier)) + "\"")
        .fix("choose another profile, or memory { policy: \"none\" }");
  TransferCost cost{&storage, tier, static_cast<double>(bytes.value), storage.bandwidth.value};
  if (storage.shared.value > 0) cost.rate = std::min(cost.rate, storage.shared.value / storage.sharers.value);
  cost.efficiency = storage.efficiency.at(cost.bytes);
  return cost;
}

TransferCost transfer_cost(const Instr& instr, const Machine& machine) {
  return transfer_cost(moved_bytes(instr), beyond_hbm(instr.op), machine);
}

}  // namespace hyperrun

#include "runtime/mpmd/expert_tiles.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "runtime/base/error.h"
#include "runtime/base/overloaded.h"
#include "runtime/mpmd/tasks.h"
#include "runtime/mpmd/windows.h"

namespace hyperrun {
namespace {

// The input with the row counts of groups; nullopt if the instruction does not work on rows of groups.
std::optional<std::size_t> counts_of(const InstrOp& op) {
  using Input = std::optional<std::size_t>;
  return std::visit(Overloaded{
                        [](const instr::GroupedGemm&) { return Input(2); },
                        [](const instr::GroupedOuter&) { return Input(2); },
                        [](const instr::SwiGlu& o) { return o.groups > 0 ? Input(2) : Input(); },
                        [](const instr::SwiGluGrad& o) { return o.groups > 0 ? Input(3) : Input(); },
                        [](const auto&) { return Input(); },
                    },
                    op);
}

bool exchanges_rows(const InstrOp& op) {
  const auto* c = std::get_if<instr::Collective>(&op);
  return c != nullptr && c->kind == instr::CollectiveKind::kAllToAllV;
}

// The instruction treats every row or byte alike, so their order does not matter.
bool is_independent_of_order(const InstrOp& op) {
  return std::visit(Overloaded{
                        [&](const instr::Collective&) { return !exchanges_rows(op); },
                        [](const instr::Cast&) { return true; },
                        [](const instr::Copy& o) { return o.parts == 1; },
                        [](const instr::Add& o) { return o.repeat == 1; },
                        [](const instr::Accumulate&) { return true; },
                        [](const auto&) { return false; },
                    },
                    op);
}

// Finds the instructions on rows of experts. Counts by source are matrices [sources, experts] that the
// tokens' devices have sent; counts by expert are their sums over sources.
class RowsOfExperts {
 public:
  explicit RowsOfExperts(const Program& program) {
    for (const Instr& instr : program.instrs)
      if (std::holds_alternative<instr::SumCounts>(instr.op))
        sources_.insert_or_assign(instr.out[0].buffer.value, instr.in[0]);
    for (const Instr& instr : program.instrs) collect_sorted(instr);
    can_be_cut_ = !matrices_.empty() && std::ranges::all_of(program.instrs, [&](const Instr& instr) {
      return can_be_tiled(instr);
    });
  }

  bool can_be_cut() const { return can_be_cut_; }

  // The counts by source that define the instruction's tiles and replace its counts by expert. nullopt: the
  // instruction stays whole.
  std::optional<Operand> sources_of(const Instr& instr) const {
    if (const auto input = counts_of(instr.op)) {
      const auto known = sources_.find(instr.in[*input].buffer.value);
      return known == sources_.end() ? std::nullopt : std::optional(known->second);
    }
    const bool regroups = std::holds_alternative<instr::Regroup>(instr.op);
    if (!regroups && !exchanges_rows(instr.op)) return std::nullopt;
    const Operand& matrix = instr.in[regroups ? 1 : 2];
    return matrices_.contains(matrix.buffer.value) ? std::optional(matrix) : std::nullopt;
  }

 private:
  // Collects the buffers whose rows are sorted by expert. In tiles they are sorted tile by tile.
  void collect_sorted(const Instr& instr) {
    const auto input = counts_of(instr.op);
    if (!input) return;
    const auto known = sources_.find(instr.in[*input].buffer.value);
    if (known == sources_.end()) return;
    matrices_.insert(known->second.buffer.value);
    const bool outer = std::holds_alternative<instr::GroupedOuter>(instr.op);
    sorted_.insert(instr.in[0].buffer.value);
    if (!std::holds_alternative<instr::GroupedGemm>(instr.op)) sorted_.insert(instr.in[1].buffer.value);
    if (!outer)
      for (const Operand& o : instr.out) sorted_.insert(o.buffer.value);
  }

  bool can_be_tiled(const Instr& instr) const {
    if (sources_of(instr) || is_independent_of_order(instr.op)) return true;
    bool touches = false;
    each_use(instr,
             [&](const Operand& o, bool, bool) { touches = touches || sorted_.contains(o.buffer.value); });
    return !touches;
  }

  std::map<std::int32_t, Operand> sources_;  // counts by source, by the buffer of counts by expert
  std::set<std::int32_t> matrices_;          // buffers of counts by source that products use
  std::set<std::int32_t> sorted_;            // buffers with rows sorted by expert
  bool can_be_cut_ = false;
};

std::int64_t part(std::int64_t n, const RowTile& t) {
  return n * (t.index + 1) / t.count - n * t.index / t.count;
}

// Sets the sizes of a tile, assuming that all experts are chosen equally often.
void set_sizes(InstrOp& op, const RowTile& tile) {
  std::visit(Overloaded{
                 [&](instr::GroupedGemm& o) { o.rows = part(o.rows, tile); },
                 [&](instr::GroupedOuter& o) {
                   o.rows = part(o.rows, tile);
                   o.accumulate = o.accumulate || tile.index > 0;
                 },
                 [&](instr::SwiGlu& o) { o.n = part(o.n, tile); },
                 [&](instr::SwiGluGrad& o) { o.n = part(o.n, tile); },
                 [&](instr::Regroup& o) { o.rows = part(o.rows, tile); },
                 [&](instr::Collective& o) { o.outer = part(o.outer, tile); },
                 [](auto&) {},
             },
             op);
}

Instr one_tile(Instr instr, const Operand& sources, const RowTile& tile) {
  set_sizes(instr.op, tile);
  if (const auto counts = counts_of(instr.op)) instr.in[*counts] = sources;
  instr.in[0].tile = tile;
  const bool gemm = std::holds_alternative<instr::GroupedGemm>(instr.op);
  if (const auto counts = counts_of(instr.op); counts && !gemm)
    for (std::size_t i = 1; i < *counts; ++i) instr.in[i].tile = tile;
  if (!std::holds_alternative<instr::GroupedOuter>(instr.op))
    for (Operand& o : instr.out) o.tile = tile;
  return instr;
}

// Replaces each instruction on rows of experts by its tiles, in place.
void cut(Program& program, std::int32_t tiles) {
  const RowsOfExperts rows(program);
  std::vector<Instr> instrs;
  instrs.reserve(program.instrs.size());
  for (Instr& instr : program.instrs) {
    const std::optional<Operand> sources = rows.sources_of(instr);
    if (!sources) {
      instrs.push_back(std::move(instr));
      continue;
    }
    const std::string origin = program.origins[static_cast<std::size_t>(instr.origin)];
    for (std::int32_t t = 0; t < tiles; ++t) {
      instrs.push_back(one_tile(instr, *sources, {t, tiles}));
      instrs.back().origin = static_cast<std::int32_t>(program.origins.size());
      program.origins.push_back(fmt::format("{}[{}/{}]", origin, t, tiles));
    }
  }
  program.instrs = std::move(instrs);
}

std::vector<std::int32_t> schedule(std::span<const StreamTask> tasks, const Window& window) {
  std::vector<std::int32_t> order = list_schedule(tasks_in(tasks, window));
  for (std::int32_t& i : order) i += window.begin;
  return order;
}

struct Candidate {
  ExpertTiling tiling;
  Nanos length{};
};

Candidate try_tiles(Program program, std::int32_t tiles, const Machine& machine, int device) {
  if (tiles > 1) cut(program, tiles);
  const std::vector<StreamTask> tasks = tasks_of(program, machine, device);
  std::vector<std::int32_t> order = identity_order(tasks.size());
  if (tiles == 1) return {{}, makespan(tasks, order)};
  std::vector<std::vector<std::int32_t>> after;
  for (const StreamTask& t : tasks) after.push_back(t.after);
  for (const Window& window : windows(program, after)) {
    const std::vector<std::int32_t> own = schedule(tasks, window);
    std::ranges::copy(own, order.begin() + window.begin);
  }
  const Nanos length = makespan(tasks, order);
  return {{tiles, std::move(order)}, length};
}

}  // namespace

bool can_be_cut(const Program& program) { return RowsOfExperts(program).can_be_cut(); }

ExpertTiling plan_expert_tiles(const Program& program, std::int32_t tiles, const Machine& machine,
                               int device) {
  if (tiles == 1 || !can_be_cut(program)) return {};
  if (tiles > 1) return try_tiles(program, tiles, machine, device).tiling;
  constexpr std::int32_t kMost = 32;
  Candidate best = try_tiles(program, 1, machine, device);
  for (std::int32_t t = 2; t <= kMost; t *= 2)
    if (Candidate one = try_tiles(program, t, machine, device); one.length < best.length)
      best = std::move(one);
  return std::move(best.tiling);
}

void apply(Program& program, const ExpertTiling& tiling) {
  if (tiling.tiles == 1) return;
  cut(program, tiling.tiles);
  reorder(program, tiling.order);
}

}  // namespace hyperrun

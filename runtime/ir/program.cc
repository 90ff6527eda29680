#include "runtime/ir/program.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/type_name.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

std::string_view name(StreamKind s) {
  static constexpr std::array<std::string_view, kStreams> kNames{"cube",    "vector", "comm", "dma-in",
                                                                 "dma-out", "send",   "recv"};
  return kNames[static_cast<std::size_t>(s)];
}

std::string_view name(Tier t) {
  static constexpr std::array<std::string_view, kTiers> kNames{"hbm", "pool", "flash"};
  return kNames[static_cast<std::size_t>(t)];
}

std::string_view name(Category c) {
  static constexpr std::array<std::string_view, kCategories> kNames{
      "weights", "gradients", "optimizer", "activations", "communication",
      "scratch", "constants", "data",      "cache",       "software"};
  return kNames[static_cast<std::size_t>(c)];
}

std::string_view name(const InstrOp& op) {
  return std::visit([]<class Op>(const Op&) { return type_name<Op>(); }, op);
}

std::string_view name(instr::CollectiveKind kind) {
  static constexpr std::array<std::string_view, 8> kNames{
      "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "shift", "send", "recv", "all-to-all-v"};
  return kNames[static_cast<std::size_t>(kind)];
}

// NormGrad adds to its output 1, the weight's gradient, all others to their output 0.
int accumulating_output(const InstrOp& op) {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.accumulate; }) {
          if (o.accumulate) return std::same_as<std::remove_cvref_t<decltype(o)>, instr::NormGrad> ? 1 : 0;
        }
        return -1;
      },
      op);
}

RowTile tile_of(const Instr& instr) { return instr.in.empty() ? RowTile{} : instr.in.front().tile; }

std::int64_t address(const Program& program, const Operand& operand) {
  constexpr int kBitsOfATier = 60;  // bits of an offset within a tier
  const Buffer& b = program[operand.buffer];
  return (static_cast<std::int64_t>(b.tier) << kBitsOfATier) + (b.offset + operand.offset).value;
}

std::vector<Use> uses(const Instr& instr) {
  std::vector<Use> list;
  each_use(instr, [&](const Operand& operand, bool read, bool write) {
    list.push_back({operand, read, write});
  });
  return list;
}

bool loads_tokens(const InstrOp& op) {
  return std::holds_alternative<instr::LoadBatch>(op) || std::holds_alternative<instr::LoadSamples>(op) ||
         std::holds_alternative<instr::LoadVectors>(op);
}

bool rounds(const Instr& instr) {
  return std::any_of(instr.out.begin(), instr.out.end(),
                     [](const Operand& o) { return o.dtype == DType::kBF16; });
}

Tier beyond_hbm(const InstrOp& op) {
  if (const auto* prefetch = std::get_if<instr::Prefetch>(&op)) return prefetch->from;
  if (const auto* store = std::get_if<instr::Store>(&op)) return store->to;
  return Tier::kHbm;
}

TrafficKind transfer_kind(const InstrOp& op) {
  return {std::holds_alternative<instr::Prefetch>(op) ? "prefetch" : "store",
          std::string(name(beyond_hbm(op)))};
}

Bytes Role::peak(Tier tier) const {
  Bytes most{};
  for (const Program& p : programs) most = std::max(most, p.peak[index_of(tier)]);
  return most;
}

const Program& Role::program(std::string_view wanted) const {
  for (const Program& p : programs)
    if (p.name == wanted) return p;
  HR_CHECK(false, "no program called " + std::string(wanted));
  return programs.front();
}

std::size_t Plan::program_index(std::string_view wanted) const {
  const Role& role = roles.front();
  return static_cast<std::size_t>(&role.program(wanted) - role.programs.data());
}

Bytes Plan::peak(Tier tier) const {
  Bytes most{};
  for (const Role& r : roles) most = std::max(most, r.peak(tier));
  return most;
}

TierBytes Plan::peaks() const { return {peak(Tier::kHbm), peak(Tier::kPool), peak(Tier::kFlash)}; }

Bytes Plan::of_all_devices(Tier tier) const {
  Bytes sum{};
  for (const Role& r : roles) sum += r.peak(tier);
  return sum * (mesh.devices() / static_cast<std::int64_t>(roles.size()));
}

}  // namespace hyperrun

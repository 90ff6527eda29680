#include "runtime/device/prepared.h"

#include <algorithm>
#include <array>

#include "collectives/group.h"
#include "runtime/base/error.h"
#include "runtime/ir/collective_args.h"
#include "runtime/ir/row_blocks.h"
#include "runtime/ir/tile_dependencies.h"

namespace hyperrun {
namespace {

struct Range {
  std::int64_t begin, end;
  bool write;
  Operand operand;
};

std::vector<Range> ranges(const Program& program, const Instr& instr) {
  std::vector<Range> list;
  for (const Use& use : uses(instr)) {
    if (program[use.operand.buffer].tier != Tier::kHbm) continue;
    const std::int64_t begin = (program[use.operand.buffer].offset + use.operand.offset).value;
    list.push_back({begin, begin + use.operand.bytes.value, use.write, use.operand});
  }
  return list;
}

bool conflict(const std::vector<Range>& a, const std::vector<Range>& b) {
  for (const Range& x : a)
    for (const Range& y : b)
      if ((x.write || y.write) && x.begin < y.end && y.begin < x.end &&
          !different_tiles(x.operand, y.operand))
        return true;
  return false;
}

// Finds the collectives that must not overtake each other. Events order the streams against each other;
// within the comm stream order is implied. A device with several collectives under way must know which of
// them touch the same memory.
void find_overtaking(const Program& program, PreparedProgram& out) {
  std::array<std::vector<std::pair<std::int32_t, std::vector<Range>>>, kStreams> earlier;
  for (PreparedInstr& p : out.instrs) {
    if (p.group == nullptr) continue;
    auto mine = ranges(program, *p.instr);
    auto& list = earlier[static_cast<std::size_t>(p.instr->stream)];
    for (auto it = list.rbegin(); it != list.rend() && p.after_comm == 0; ++it)
      if (conflict(it->second, mine)) p.after_comm = it->first;
    list.emplace_back(p.instr->seq, std::move(mine));
  }
}

void move_to_block(const std::vector<Operand>& operands, std::int64_t block, std::vector<std::byte*>& at) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].tile.blocks > 0) at[i] += begin_of(operands[i], block).value;
}

// Null for a tile without rows, which has nothing to compute.
std::shared_ptr<const PreparedBlocks> blocks_of(const Instr& instr, const Addresses& at) {
  const std::int64_t blocks = hyperrun::blocks_of(instr);
  auto prepared = std::make_shared<PreparedBlocks>();
  if (tile_of(instr).row_count() == 0) return prepared;
  prepared->first = instr;
  take_rows(prepared->first.op, 1, blocks);
  prepared->other = prepared->first;
  add_to_sums_over_rows(prepared->other.op);
  for (std::int64_t b = 0; b < blocks; ++b) {
    Addresses& own = prepared->at.emplace_back(at);
    move_to_block(instr.in, b, own.in);
    move_to_block(instr.out, b, own.out);
  }
  return prepared;
}

// Sets the runs of a collective, which reads the rows of its blocks in place.
void set_runs(const Instr& instr, CollectiveArgs& args) {
  const Operand &in = instr.in[0], &out = instr.out[0];
  args.in += begin_of(in, 0).value;
  args.out += begin_of(out, 0).value;
  if (args.kind == Collective::kAllReduce) return;                   // it is of one block
  const Operand& own = in.tile.blocks < out.tile.blocks ? in : out;  // the part of one member
  const bool exchanges = args.kind == Collective::kAllToAll;
  args.runs = own.tile.blocks / (exchanges ? args.all_to_all.a : args.outer);
  args.pitch = own.tile.rows * (exchanges ? 1 : row_bytes(own).value / size_of(args.dtype));
}

}  // namespace

Groups::Groups(const PlanWorld& world, const Plan& plan) {
  for (const AxisList& axes : axes_of_collectives(plan))
    groups_.emplace(
        axes, &world.make_group(static_cast<int>(groups_.size()), plan.mesh.group(world.device(), axes)));
}

PreparedProgram prepare(const Program& program, const DeviceMemory& memory, const Groups& groups) {
  PreparedProgram out;
  out.program = &program;
  const auto address = [&](const Operand& o) {
    const Buffer& b = program[o.buffer];
    return b.tier == Tier::kHbm ? memory.hbm.view(b.offset + o.offset, o.bytes).data() : nullptr;
  };
  const auto counted = [&](const TrafficKind& kind) {
    const auto known = std::find(out.traffic.begin(), out.traffic.end(), kind);
    const auto index = static_cast<std::size_t>(known - out.traffic.begin());
    if (known == out.traffic.end()) out.traffic.push_back(kind);
    return index;
  };
  const auto there = [&](const instr::Fetch& fetch) {
    std::byte* const base = memory.hbm.peer_base(fetch.from_rank);
    HR_CHECK(base != nullptr || memory.peers != nullptr, "what a program fetches lies nowhere");
    return base != nullptr ? base + fetch.offset : nullptr;
  };
  for (const Instr& instr : program.instrs) {
    PreparedInstr p;
    p.instr = &instr;
    for (const Operand& o : instr.in) p.at.in.push_back(address(o));
    for (const Operand& o : instr.out) p.at.out.push_back(address(o));
    if (const auto* fetch = std::get_if<instr::Fetch>(&instr.op)) {
      p.at.in = {there(*fetch)};
      if (p.at.in[0] == nullptr) p.peers = memory.peers;
    }
    if (instr.scratch.buffer.valid()) p.at.scratch = address(instr.scratch);
    if (const auto* c = std::get_if<instr::Collective>(&instr.op)) {
      p.group = &groups.along(c->axes);
      p.args = collective_args(*c, p.group->size());
      if (!p.at.in.empty()) p.args.in = p.at.in[0];
      if (!p.at.out.empty()) p.args.out = p.at.out[0];
      out.has_messages = out.has_messages || instr::is_message(c->kind);
      if (c->kind == instr::CollectiveKind::kAllToAllV) {
        p.args.kind = Collective::kAllToAllV;
        p.args.outer = 1;
        p.counts.resize(4 * static_cast<std::size_t>(p.group->size()));
      }
      if (tile_of(instr).blocks > 0) set_runs(instr, p.args);
      p.traffic = counted({std::string(name(c->kind)), program.mesh.to_string(c->axes)});
    } else if (const Tier tier = beyond_hbm(instr.op); tier != Tier::kHbm) {
      const Operand& there = std::holds_alternative<instr::Prefetch>(instr.op) ? instr.in[0] : instr.out[0];
      p.beyond = &memory.beyond(tier);
      p.offset = program[there.buffer].offset + there.offset;
    }
    if (p.group == nullptr && tile_of(instr).blocks > 0) p.blocks = blocks_of(instr, p.at);
    out.streams[static_cast<std::size_t>(p.instr->stream)].push_back(out.instrs.size());
    out.instrs.push_back(std::move(p));
  }
  for (PreparedInstr& p : out.instrs)
    if (p.beyond != nullptr) p.traffic = counted(transfer_kind(p.instr->op));
  find_overtaking(program, out);
  return out;
}

}  // namespace hyperrun

// A Program made ready for one device: every address, group and statistic is resolved when it is loaded,
// so that a step only follows pointers.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device_memory.h"
#include "runtime/device/kernel.h"
#include "runtime/device/plan_world.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

// The groups along each list of mesh axes that any Program of the job uses. Made once, in one order on
// all devices.
class Groups {
 public:
  Groups(const PlanWorld& world, const Plan& plan);
  Group& along(const AxisList& axes) const { return *groups_.at(axes); }

 private:
  std::map<AxisList, Group*> groups_;
};

// Rows that lie in blocks are computed block by block.
struct PreparedBlocks {
  Instr first, other;  // the instruction of one block; of another one than the first, sums are added to
  std::vector<Addresses> at;
};

struct PreparedInstr {
  const Instr* instr = nullptr;
  Addresses at;
  std::shared_ptr<const PreparedBlocks> blocks;  // of one that computes a tile of blocks of rows
  Group* group = nullptr;                        // of a collective
  CollectiveArgs args;
  std::int32_t after_comm =
      0;  // of a collective: the last earlier one of its stream that it may not overtake
  // Of an all-to-all-v: room for what goes to and comes from each, and where it begins.
  std::vector<std::int64_t> counts;
  RemoteMemory* peers = nullptr;  // of a fetch from another host: HBM of the ranks there
  Backing* beyond = nullptr;      // of a transfer: where its bytes lie beyond HBM,
  Bytes offset{};                 // and at which offset there
  std::size_t traffic = 0;        // of a collective or a transfer: index into PreparedProgram::traffic
};

struct PreparedProgram {
  const Program* program = nullptr;
  std::vector<PreparedInstr> instrs;
  std::vector<TrafficKind> traffic;
  std::array<std::vector<std::size_t>, kStreams> streams;  // its instructions, in order
  bool has_messages = false;
};

PreparedProgram prepare(const Program& program, const DeviceMemory& memory, const Groups& groups);

}  // namespace hyperrun

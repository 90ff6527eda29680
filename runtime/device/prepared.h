// A Program prepared for one device. Every address, group and statistic is resolved when it is loaded, so
// that a step only follows pointers.
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

// The groups along each list of mesh axes that a Program of the job uses. They are made once, in one order on
// all devices.
class Groups {
 public:
  Groups(const PlanWorld& world, const Plan& plan);
  Group& along(const AxisList& axes) const { return *groups_.at(axes); }

 private:
  std::map<AxisList, Group*> groups_;
};

// An instruction on rows that lie in blocks, which is computed block by block.
struct PreparedBlocks {
  Instr first, other;  // instruction of the first block, and of the others, which add to the sums
  std::vector<Addresses> at;
};

struct PreparedInstr {
  const Instr* instr = nullptr;
  Addresses at;
  std::shared_ptr<const PreparedBlocks> blocks;  // for an instruction on a tile of blocks of rows
  Group* group = nullptr;                        // of a collective
  CollectiveArgs args;
  std::int32_t after_comm =
      0;  // for a collective: the last earlier one of its stream that it may not overtake
  // For an all-to-all-v: room for the counts to and from each member, and for their starts.
  std::vector<std::int64_t> counts;
  RemoteMemory* peers = nullptr;  // for a fetch from another host: HBM of the ranks there
  Backing* beyond = nullptr;      // for a transfer: the tier beyond HBM
  Bytes offset{};                 // and the offset there
  std::size_t traffic = 0;        // for a collective or a transfer: index into PreparedProgram::traffic
};

struct PreparedProgram {
  const Program* program = nullptr;
  std::vector<PreparedInstr> instrs;
  std::vector<TrafficKind> traffic;
  std::array<std::vector<std::size_t>, kStreams> streams;  // instructions of each stream, in order
  bool has_messages = false;
};

PreparedProgram prepare(const Program& program, const DeviceMemory& memory, const Groups& groups);

}  // namespace hyperrun

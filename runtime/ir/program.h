// What a device runs: buffers at fixed places, and instructions on in-order streams with events
// between them. One Program serves every device of its role.
//
//   stream   cube |--Gemm--|--Gemm--|
//            comm          |--AllReduce(waits cube 1)--|
//   event    (cube, 1): the first instruction of the cube stream has finished
//
// The order of `instrs` is itself legal: one thread may run them one after the other.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/graph.h"
#include "runtime/ir/instr.h"
#include "runtime/ir/tier.h"

namespace hyperrun {

using BufferId = Id<struct BufferTag>;

enum class StreamKind : std::uint8_t { kCube, kVector, kComm, kDmaIn, kDmaOut, kSend, kRecv };
inline constexpr std::size_t kStreams = 7;
std::string_view name(StreamKind s);
// Collectives, and messages between the stages of a pipeline. Those have streams of their own, one a
// direction: a stage that sends must not wait for the peer that sends to it.
constexpr bool communicates(StreamKind s) {
  return s == StreamKind::kComm || s == StreamKind::kSend || s == StreamKind::kRecv;
}

enum class Category : std::uint8_t {
  kWeights,
  kGradients,
  kOptimizer,
  kActivations,
  kCommunication,
  kScratch,
  kConstants,
  kData,
  kCache
};
inline constexpr std::size_t kCategories = 9;
std::string_view name(Category c);

// A place in a tier. Live from its first to its last instruction (both included); state is live
// always, and lies at the same offset in every Program of a job. What is moved out of HBM and comes back has
// a buffer for each of its stays, and one in the tier where it is meanwhile.
struct Buffer {
  std::string name;
  Bytes bytes{};
  Tier tier = Tier::kHbm;
  Category category = Category::kActivations;
  bool state = false;
  Bytes offset{};
  std::int32_t first = -1, last = -1;
  Bytes empty{};  // see Operand::empty
  bool operator==(const Buffer&) const = default;
};

// Which rows an operand is about: of all rows that the buffer holds the `index`-th of `count` tiles. Of rows
// of experts it is known which these are when the numbers of rows are, the same on all devices
// (runtime/device/kernels/tile_rows.h). Other rows lie in equal blocks, of each of which a tile has its part:
//
//   blocks 2, rows 4   |0 0 1 1|0 0 1 1|   of which tile   (what two devices give lies so in what is
//   gathered)
//
// No row belongs to two tiles of one count and the same blocks.
struct RowTile {
  std::int32_t index = 0, count = 1;
  std::int64_t blocks = 0, rows = 0;  // `rows` of a block; none: rows of experts
  bool whole() const { return count == 1; }
  // Of each block.
  std::int64_t first_row() const { return rows * index / count; }
  std::int64_t row_count() const { return rows * (index + 1) / count - first_row(); }
  bool operator==(const RowTile&) const = default;
};

struct Operand {
  BufferId buffer;
  Bytes offset{};  // within the buffer
  Bytes bytes{};
  DType dtype = DType::kF32;
  RowTile tile{};  // within these bytes
  // Room within these bytes that is expected to stay empty. A buffer of rows of experts has room for any
  // routing; how many of its rows there are, is known when the step runs (expected_elements in graph.h).
  Bytes empty{};
  bool operator==(const Operand&) const = default;
};

// The `seq`-th instruction (from 1) of `stream` has finished.
struct Event {
  StreamKind stream = StreamKind::kCube;
  std::int32_t seq = 0;
  bool operator==(const Event&) const = default;
};

// Of a training step. What the backward pass computes again belongs to the forward pass.
enum class Pass : std::uint8_t { kForward, kBackward, kUpdate };
inline constexpr std::size_t kPasses = 3;

struct Instr {
  InstrOp op;
  StreamKind stream = StreamKind::kCube;
  std::vector<Operand> in, out;
  Operand scratch;           // invalid buffer when the op needs none
  std::vector<Event> waits;  // on other streams
  std::int32_t seq = 0;      // from 1, in its stream
  std::int32_t origin = -1;  // index into Program::origins
  Pass pass = Pass::kForward;
  // While a Program is made: of the i-th pair of passes that are to be done beside each other, 2 i and
  // 2 i + 1; -1: of none.
  std::int32_t half = -1;
  bool operator==(const Instr&) const = default;
};

// A value that is read after the last instruction and reported. A scalar is the same on all devices that have
// it. Of an array each has its part (runtime/device/output_arrays.h).
struct Output {
  std::string name;
  Operand operand;  // of a device
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape{};  // of the whole; a scalar has none
  Layout layout{};                    // of that; nothing of it is partial
  std::vector<std::int64_t> rings{};  // of each dimension, see Dim::ring
  bool operator==(const Output&) const = default;
};

struct Program {
  std::string name;
  Mesh mesh;
  std::vector<Buffer> buffers;
  std::vector<Instr> instrs;
  std::vector<std::string> origins;  // node names, with the micro-batch where there are several
  std::vector<Output> outputs;
  TierBytes peak{};  // planned: end of the highest live byte, state included

  const Buffer& operator[](BufferId b) const { return buffers[b.index()]; }
  bool operator==(const Program&) const = default;
};

// Where an operand lies, for those who compare addresses: tiers do not meet.
std::int64_t address(const Program& program, const Operand& operand);

// The rows that an instruction is about, which its first input says; whole for all that have no rows of
// experts.
RowTile tile_of(const Instr& instr);

// Of so many groups that have as many rows each those that have rows in the tile.
constexpr std::int64_t groups_in(const RowTile& tile, std::int64_t groups) {
  return (groups * (tile.index + 1) + tile.count - 1) / tile.count - groups * tile.index / tile.count;
}

// How an instruction touches memory. Accumulating outputs are read as well.
struct Use {
  Operand operand;
  bool read = false, write = false;
};
std::vector<Use> uses(const Instr& instr);

// The output that keeps what it held and is added to; -1: none.
int accumulating_output(const InstrOp& op);

// The same as a visit, for those who look at every instruction of long Programs.
template <class Visit>
void each_use(const Instr& instr, Visit visit) {
  for (const Operand& operand : instr.in) visit(operand, true, false);
  const int accumulates = accumulating_output(instr.op);
  for (int i = 0; i < static_cast<int>(instr.out.size()); ++i)
    visit(instr.out[static_cast<std::size_t>(i)], accumulates == i, true);
  if (instr.scratch.buffer.valid()) visit(instr.scratch, false, true);
}

// Brings the tokens of a training's micro-batch, which begins with that.
bool loads_tokens(const InstrOp& op);

// Some result is not float32, in which it is computed.
bool rounds(const Instr& instr);

// What an instruction asks of the machine.
struct Work {
  Flops flops{};
  Bytes hbm{};    // bytes read and written in HBM
  Bytes wire{};   // bytes that this device sends, as a bandwidth-optimal algorithm does
  Bytes moved{};  // bytes that go from one tier to another
};
Work work(const Instr& instr, const Mesh& mesh);

// Ends the origin of an instruction that a plan of memory has put there a second time, for a tensor that left
// HBM and is not fetched. It computes nothing that is not computed elsewhere.
inline constexpr std::string_view kMadeAgain = "@again";

// The tier that a Prefetch takes its bytes from or a Store brings them to; HBM: it is neither.
Tier beyond_hbm(const InstrOp& op);

// A state tensor as the checkpoint sees it.
struct StateTensor {
  std::string name;  // of the Graph, "layers.0.attention.wq"
  TensorClass cls = TensorClass::kWeight;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // global
  Layout layout;
  Bytes offset{};  // in `tier`
  Bytes bytes{};   // of one device's part
  SavedAs saved;   // its shape filled in
  Tier tier = Tier::kHbm;
  bool operator==(const StateTensor&) const = default;
};

// What the devices of one kind run and hold: all devices of a job, or those of one stage of its pipeline.
struct Role {
  std::vector<Program> programs;
  std::vector<StateTensor> state;
  Bytes peak(Tier tier = Tier::kHbm) const;  // the highest of the programs
  const Program& program(std::string_view name) const;
  bool operator==(const Role&) const = default;
};

// All that is compiled from a job. Every role has programs of the same names in the same order, so that one
// number names an invocation's program on all devices.
struct Plan {
  Mesh mesh;
  AxisList role_axes;  // a device's role is the index of its coordinates on these; none: there is one role
  std::vector<Role> roles;

  std::size_t role_of(std::int64_t device) const {
    return static_cast<std::size_t>(mesh.index(device, role_axes));
  }
  const Role& of_device(std::int64_t device) const { return roles[role_of(device)]; }
  std::size_t program_index(std::string_view name) const;
  Bytes peak(Tier tier = Tier::kHbm) const;  // the highest of the roles
  TierBytes peaks() const;
  Bytes of_all_devices(Tier tier) const;  // their peaks together
  bool operator==(const Plan&) const = default;
};

std::string print(const Program& program);
// Every wait names an instruction that is issued earlier; two instructions that touch one address, one
// of them writing, are ordered; nothing is read before it is written; no live buffers overlap; outputs
// are written and live at the end. Throws kInternal.
void verify(const Program& program);
// What the roles send each other is received, in the order in which it is sent, and no role waits for ever:
// also not where each device issues its instructions one after the other. Throws kInternal.
void verify(const Plan& plan);
// Whether each Program also comes to its end where a stream does nothing else while it waits for a message's
// other side, as the streams of a device do on the simulated machine.
bool messages_meet(const Plan& plan);

}  // namespace hyperrun

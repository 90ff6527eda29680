// A Program is what a device runs: buffers at fixed offsets, and instructions on in-order streams with events
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
// True for the streams of collectives and of messages between pipeline stages. Messages have a stream for
// each direction: a stage that sends must not wait for the peer that sends to it.
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
  kCache,
  kSoftware  // what a framework keeps besides (runtime/compile/software_memory.h)
};
inline constexpr std::size_t kCategories = 10;
std::string_view name(Category c);

// A range of bytes in a tier, live from its first to its last instruction (both included). State is always
// live, and has the same offset in every Program of a job. A tensor that is evicted from HBM and comes back
// has one buffer for each stretch in HBM and one in the lower tier.
struct Buffer {
  std::string name;
  Bytes bytes{};
  Tier tier = Tier::kHbm;
  Category category = Category::kActivations;
  bool state = false;
  Bytes offset{};
  std::int32_t first = -1, last = -1;
  Bytes empty{};  // room that is expected to stay unused (Operand::empty)
  bool operator==(const Buffer&) const = default;
};

// The rows of a buffer that an operand covers: the `index`-th of `count` tiles. Which rows of experts a tile
// has is known only when their numbers are, at run time (runtime/device/kernels/tile_rows.h). Other rows are
// in blocks of equal size, and a tile has its part of each block. For example, a gathered tensor has a block
// from each of two devices:
//
//   blocks 2, rows 4, count 2   |0 0 1 1|0 0 1 1|   the tile of each row
//
// No row belongs to two tiles of one count and the same blocks.
struct RowTile {
  std::int32_t index = 0, count = 1;
  std::int64_t blocks = 0;  // 0: rows of experts
  std::int64_t rows = 0;    // rows of a block
  bool whole() const { return count == 1; }
  // The tile's rows within each block.
  std::int64_t first_row() const { return rows * index / count; }
  std::int64_t row_count() const { return rows * (index + 1) / count - first_row(); }
  bool operator==(const RowTile&) const = default;
};

struct Operand {
  BufferId buffer;
  Bytes offset{};  // within the buffer
  Bytes bytes{};
  DType dtype = DType::kF32;
  RowTile tile{};  // a part of the rows in these bytes
  // Bytes that are expected to stay unused. A buffer of rows of experts has room for any routing; the actual
  // number of rows is known only at run time (expected_elements() in graph.h).
  Bytes empty{};
  bool operator==(const Operand&) const = default;
};

// The `seq`-th instruction (from 1) of `stream` has finished.
struct Event {
  StreamKind stream = StreamKind::kCube;
  std::int32_t seq = 0;
  bool operator==(const Event&) const = default;
};

// The parts of a training step. Recomputation in the backward pass counts as kForward.
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
  // Used only while a Program is compiled: the instructions of the i-th pair of passes have 2 i and 2 i + 1;
  // -1: in no pair.
  std::int32_t half = -1;
  bool operator==(const Instr&) const = default;
};

// A value that is read after the last instruction and reported. A scalar is the same on all devices that have
// it. Each device has its part of an array (runtime/device/output_arrays.h).
struct Output {
  std::string name;
  Operand operand;  // the device's part
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape{};  // shape of the whole array; a scalar has none
  Layout layout{};                    // layout of the array, without partial axes
  std::vector<std::int64_t> rings{};  // Dim::ring of each dimension
  bool operator==(const Output&) const = default;
};

struct Program {
  std::string name;
  Mesh mesh;
  std::vector<Buffer> buffers;
  std::vector<Instr> instrs;
  std::vector<std::string> origins;  // node names, with the micro-batch where there are several
  std::vector<Output> outputs;
  TierBytes peak{};  // planned peak of each tier: the highest end of a buffer, state included

  const Buffer& operator[](BufferId b) const { return buffers[b.index()]; }
  bool operator==(const Program&) const = default;
};

// The address of an operand in one number line for all tiers, so that operands of two tiers never overlap.
std::int64_t address(const Program& program, const Operand& operand);

// The tile of rows of an instruction, read from its first input. It is whole if that has no tile.
RowTile tile_of(const Instr& instr);

// The number of groups with rows in the tile, of `groups` groups with equally many rows.
constexpr std::int64_t groups_in(const RowTile& tile, std::int64_t groups) {
  return (groups * (tile.index + 1) + tile.count - 1) / tile.count - groups * tile.index / tile.count;
}

// One access of an instruction to memory. Accumulating outputs are read as well.
struct Use {
  Operand operand;
  bool read = false, write = false;
};
std::vector<Use> uses(const Instr& instr);

// The index of the output that the instruction adds to instead of overwriting it; -1: none.
int accumulating_output(const InstrOp& op);

// Calls visit(operand, read, write) for each access, without allocating: for passes over long Programs.
template <class Visit>
void each_use(const Instr& instr, Visit visit) {
  for (const Operand& operand : instr.in) visit(operand, true, false);
  const int accumulates = accumulating_output(instr.op);
  for (int i = 0; i < static_cast<int>(instr.out.size()); ++i)
    visit(instr.out[static_cast<std::size_t>(i)], accumulates == i, true);
  if (instr.scratch.buffer.valid()) visit(instr.scratch, false, true);
}

// True for ops that load the tokens of a training's micro-batch. A micro-batch begins with one.
bool loads_tokens(const InstrOp& op);

// True if some result is rounded from float32, in which all results are computed.
bool rounds(const Instr& instr);

// The work of an instruction: what it costs of the machine.
struct Work {
  Flops flops{};
  Bytes hbm{};    // bytes read and written in HBM
  Bytes wire{};   // bytes that this device sends with a bandwidth-optimal algorithm
  Bytes moved{};  // bytes that a transfer moves between tiers
};
Work work(const Instr& instr, const Mesh& mesh);

// The suffix of the origin of an instruction that an offload plan runs a second time (rematerialisation): its
// result was evicted from HBM and is not prefetched.
inline constexpr std::string_view kMadeAgain = "@again";

// The lower tier of a Prefetch or a Store; HBM if the op is neither.
Tier beyond_hbm(const InstrOp& op);

// A state tensor as checkpoints save it.
struct StateTensor {
  std::string name;  // its name in the Graph: "layers.0.attention.wq"
  TensorClass cls = TensorClass::kWeight;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // global
  Layout layout;
  Bytes offset{};  // in `tier`
  Bytes bytes{};   // size of one device's part
  SavedAs saved;   // with its shape filled in
  Tier tier = Tier::kHbm;
  bool operator==(const StateTensor&) const = default;
};

// A role: the Programs and the state of devices that run the same, which are all devices of a job or those of
// one pipeline stage.
struct Role {
  std::vector<Program> programs;
  std::vector<StateTensor> state;
  Bytes peak(Tier tier = Tier::kHbm) const;  // the highest peak of the programs
  const Program& program(std::string_view name) const;
  bool operator==(const Role&) const = default;
};

// The result of compiling a job. Every role has programs of the same names in the same order, so that one
// index names an invocation's program on all devices.
struct Plan {
  Mesh mesh;
  AxisList role_axes;  // a device's role is its index on these axes; empty: there is one role
  std::vector<Role> roles;

  std::size_t role_of(std::int64_t device) const {
    return static_cast<std::size_t>(mesh.index(device, role_axes));
  }
  const Role& of_device(std::int64_t device) const { return roles[role_of(device)]; }
  std::size_t program_index(std::string_view name) const;
  Bytes peak(Tier tier = Tier::kHbm) const;  // the highest peak of the roles
  TierBytes peaks() const;
  Bytes of_all_devices(Tier tier) const;  // sum of the devices' peaks
  bool operator==(const Plan&) const = default;
};

std::string print(const Program& program);
// Checks a Program; throws kInternal if it breaks one of these rules:
//   - Every wait names an instruction that is issued earlier.
//   - Two instructions that touch one address, one of them writing, are ordered.
//   - Nothing is read before it is written.
//   - Live buffers do not overlap.
//   - Outputs are written, and live at the end.
void verify(const Program& program);
// Checks the messages between roles: all that are sent are received, in the same order, and no role waits for
// ever, not even where each device issues its instructions one after the other. Throws kInternal.
void verify(const Plan& plan);
// True if each Program also ends when a stream is blocked while it waits for the other side of a message,
// like the streams of a simulated device.
bool messages_meet(const Plan& plan);

}  // namespace hyperrun

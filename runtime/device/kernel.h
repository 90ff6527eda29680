// The kernel of one instruction on the emulated device: operands become pointers, the op becomes a call.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/device/kernels/tile_rows.h"
#include "runtime/ir/input_vectors.h"
#include "runtime/ir/program.h"
#include "runtime/ir/requests.h"
#include "runtime/ir/samples.h"

namespace hyperrun {

// The run-time arguments of an invocation.
struct Scalars {
  std::int64_t step = 0;  // step of the training, from 0
  double lr = 0;
  const Requests* requests = nullptr;     // requests of a pass of generation
  const Samples* samples = nullptr;       // samples of a program that scores, or trains on given texts
  const InputVectors* vectors = nullptr;  // inputs of an encoder
  std::int64_t slot = 0;                  // slot of ports, from 0
  double other_squares =
      0;  // sum of squares of the gradients of other parts of the model, which are clipped with these
};

// The source of tokens.
struct Feed {
  // Writes sequences [first, first + count) of the step's batch, columns [from, from + length).
  std::function<void(std::int64_t step, std::int64_t first, std::int64_t count, std::int64_t from,
                     std::int64_t length, std::int32_t* ids, std::int32_t* targets)>
      batch;
};

struct KernelContext {
  const Mesh& mesh;
  int device = 0;
  std::uint64_t seed = 0;
  const Feed& feed;
};

// The operands of one instruction as addresses, in the order of Instr::in and Instr::out.
struct Addresses {
  std::vector<std::byte*> in, out;
  std::byte* scratch = nullptr;
};

// The tile in the type of the kernels.
constexpr kernels::RowTile kernel_tile(const RowTile& tile) { return {tile.index, tile.count}; }

// Runs any instruction but a Collective or a transfer. The result is deterministic; nothing is allocated.
void run_kernel(const Instr& instr, const Addresses& at, const Scalars& scalars,
                const KernelContext& context);

}  // namespace hyperrun

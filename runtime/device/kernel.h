// One instruction on the emulated device: operands become pointers, the op becomes a call.
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

// What an invocation says at run time.
struct Scalars {
  std::int64_t step = 0;  // of the training, from 0
  double lr = 0;
  const Requests* requests = nullptr;     // of a pass of generation
  const Samples* samples = nullptr;       // of a program that scores, or trains on given texts
  const InputVectors* vectors = nullptr;  // of an encoder
  std::int64_t slot = 0;                  // of ports, from 0
  double other_squares = 0;  // of the gradients of other parts of the model, which are clipped with these
};

// Where tokens come from.
struct Feed {
  // Sequences [first, first + count) of the step's batch, columns [from, from + length).
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

// Operands of one instruction as addresses, in the order of Instr::in and Instr::out.
struct Addresses {
  std::vector<std::byte*> in, out;
  std::byte* scratch = nullptr;
};

// As kernels have it.
constexpr kernels::RowTile kernel_tile(const RowTile& tile) { return {tile.index, tile.count}; }

// Runs anything but a Collective and a transfer. Deterministic; allocates nothing.
void run_kernel(const Instr& instr, const Addresses& at, const Scalars& scalars,
                const KernelContext& context);

}  // namespace hyperrun

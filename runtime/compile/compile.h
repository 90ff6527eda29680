// The compiler makes the Programs of a job's devices. compile.cc is the list of passes.
//
//   init      sets every state tensor (weights, moments, tables); runs once, before a checkpoint is restored
//   train     one step: all micro-batches forward and backward, gradient exchange, optimizer
//   prefill   takes a chunk of some sequences' prompts                       (when the job generates)
//   decode    takes one token of every sequence, and draws the next of each  (when the job generates)
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/compile/lowered.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/requests.h"
#include "runtime/mpmd/collective_tiles.h"
#include "runtime/mpmd/expert_tiles.h"
#include "runtime/offload/offload_plan.h"

namespace hyperrun {

// The decisions about one role that another compilation of the same job can reuse.
struct RoleMoves {
  std::vector<OffloadPlan> programs;  // the evictions of each Program of the role
  std::vector<std::size_t> buffers;   // the buffers that each Program had when they were decided
  ExpertTiling tiling;                // tiles of the training step's rows of experts
  CollectiveTiling chunks;            // tiles of its other collectives
  std::vector<std::int32_t> pairs;    // the order of its paired passes (runtime/mpmd/pairs.h)
  std::vector<std::int32_t> order;    // its order with early updates (early_updates.h); empty: as lowered
};
using Moves = std::vector<RoleMoves>;

// Jobs that are refused with kDoesNotFit instead of planning their transfers, which takes long.
struct Refusals {
  // Refuses a job whose live bytes exceed the budget whatever is evicted. Otherwise such a job is planned for
  // the least HBM and pool.
  bool hopeless = false;
  // Refuses a step of more instructions if a few of its micro-batches cannot stand for all.
  std::size_t longest = std::numeric_limits<std::size_t>::max();
  bool operator==(const Refusals&) const = default;
};
// Each plan of a longer step takes up to a minute, and several dozens are made.
inline constexpr std::size_t kLongStep = 100'000;  // instructions

struct Compiled {
  Plan plan;
  Graph training;  // sharded, for reports; of a generation alone that of "decode"
  Moves moves;     // and tiles
};

// Compiles a training, with its generation if it has one. Throws kBadLayout or kDoesNotFit. With
// HYPERRUN_DUMP each phase is written there as text. `like`: transfers and tiles decided for a job of the
// same structure; without it the job's policy decides.
Compiled compile(const Job& job, const Moves* like = nullptr, const Refusals& refusals = {});

// Compiles a generation alone: "prefill" and "decode". Its state is the weights, in the data type of
// products, and the cache. `like` and errors as for compile().
Compiled compile_generation(const Job& job, const Moves* like = nullptr);

// Compiles only the Program "score", which scores given texts. Its output "logp", f32[batch / micro_batches,
// sequence], is the log probability of each target of its samples (runtime/ir/samples.h) at
// training.policy.temperature. Its state is the weights, as in a generation. `like` and errors as for
// compile().
Compiled compile_scoring(const Job& job, const Moves* like = nullptr);

// The sizes of a job's generation. Throws kBadValue if they do not go together.
GenerationShape generation_shape(const Job& job);

// Only Compiled::training: the graph of a step with all layouts. Throws kBadLayout.
Graph sharded_training(const Job& job);

// The step of a job without a pipeline in which every buffer has an address range of its own. Waits then
// follow from the data alone, not from the reuse of addresses. Only state has names. `training` is the result
// of sharded_training() on `mesh`.
Lowered unplaced_step(const Graph& training, const Mesh& mesh, int micro_batches);

// Throws kDoesNotFit if a Program's peak exceeds the budget; the error names the largest live tensors there.
void check_fits(const Plan& plan, Bytes budget);
// The same check for all tiers of the job.
void check_fits(const Plan& plan, const SupernodeSpec& spec);

}  // namespace hyperrun

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

// Of a role's Programs, in their order: what lies beyond HBM, and when; and how many buffers each had when
// that was decided. Of its training step: into which tiles its rows are cut, those of experts first; in
// which order passes are done that are paired; in which all is, where updates come early (early_updates.h).
struct RoleMoves {
  std::vector<OffloadPlan> programs;
  std::vector<std::size_t> buffers;
  ExpertTiling tiling;
  CollectiveTiling chunks;
  std::vector<std::int32_t> pairs;  // order of paired passes (runtime/mpmd/pairs.h)
  std::vector<std::int32_t> order;
};
using Moves = std::vector<RoleMoves>;

// Transfers whose planning takes long, that are refused (kDoesNotFit) in place of it.
struct Refusals {
  // Of a job that no plan fits, as more is live at once whatever moves; else it is planned for the least HBM
  // and pool.
  bool hopeless = false;
  // Of a step of more instructions, where a few micro-batches do not say how all fit.
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

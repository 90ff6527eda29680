// The compiler: a Job becomes the Programs of its devices. compile.cc is the list of passes.
//
//   init      sets every state tensor (weights, moments, tables); runs once, before a restore
//   train     one step: all micro-batches forward and backward, gradient exchange, optimizer
//   prefill   takes a chunk of a prompt of one sequence of each group     (when the job generates)
//   decode    takes a token of every sequence, and draws the next of each (when the job generates)
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

// Throws kBadLayout or kDoesNotFit. With HYPERRUN_DUMP each phase is written there as text. `like`: what
// moves and in which tiles, as it was decided for a job of the same structure; else the job's policy decides.
Compiled compile(const Job& job, const Moves* like = nullptr, const Refusals& refusals = {});

// The Programs of a generation alone, "prefill" and "decode": state is the weights, in the format that
// products take them in, and the cache. `like` and what is thrown: as above.
Compiled compile_generation(const Job& job, const Moves* like = nullptr);

// The Program that scores given texts alone, "score": of each target of its samples (runtime/ir/samples.h) it
// gives the log probability at training.policy.temperature, "logp" f32[batch / micro_batches, sequence] of
// the job's training. State is the weights, as of a generation. `like` and what is thrown: as above.
Compiled compile_scoring(const Job& job, const Moves* like = nullptr);

// Sizes of a job's generation. Throws kBadValue where they do not go together.
GenerationShape generation_shape(const Job& job);

// Compiled::training alone: what a step computes, and how everything lies. Throws kBadLayout.
Graph sharded_training(const Job& job);

// The step of a job without stages, each buffer at a place of its own: what waits for what follows from the
// data alone, and not from places that are used again. It has no names but those of state. `training`:
// sharded_training's, on `mesh`.
Lowered unplaced_step(const Graph& training, const Mesh& mesh, int micro_batches);

// Throws kDoesNotFit when a Program's peak exceeds the budget, naming the largest live tensors there.
void check_fits(const Plan& plan, Bytes budget);
// The same of all tiers that the job has.
void check_fits(const Plan& plan, const SupernodeSpec& spec);

}  // namespace hyperrun

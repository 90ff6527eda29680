// The compiler: a Job becomes the Programs of its devices. compile.cc is the list of passes.
//
//   init      sets every state tensor (weights, moments, tables); runs once, before a restore
//   train     one step: all micro-batches forward and backward, gradient exchange, optimizer
//   prompt    sets the tokens of a generation        (when the job generates)
//   generate  one more token for every sequence       (when the job generates)
#pragma once

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

// Of each role's Programs, in their order: what lies beyond HBM, and when.
using Moves = std::vector<std::vector<Absences>>;

struct Compiled {
  Plan plan;
  Graph training;  // sharded, for reports
  Moves moves;
};

// Throws kBadLayout or kDoesNotFit. With HYPERRUN_DUMP each phase is written there as text. `like`: what
// moves, as it was decided for a job of the same structure; else the job's policy decides.
Compiled compile(const Job& job, const Moves* like = nullptr);

// Compiled::training alone: what a step computes, and how everything lies. Throws kBadLayout.
Graph sharded_training(const Job& job);

// Throws kDoesNotFit when a Program's peak exceeds the budget, naming the largest live tensors there.
void check_fits(const Plan& plan, Bytes budget);
// The same of all tiers that the job has.
void check_fits(const Plan& plan, const SupernodeSpec& spec);

}  // namespace hyperrun

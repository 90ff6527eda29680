// What the compilations of a whole model and of its parts have in common.
#pragma once

#include <string>

#include "runtime/base/flags.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/lower.h"

namespace hyperrun {

void write_dump(const std::string& phase, const std::string& printed);

// What is printed where HYPERRUN_DUMP asks for it: that of a large Program takes as long as making it.
void dump(const std::string& phase, const auto& printed) {
  if (!flags().dump_dir.empty()) write_dump(phase, printed());
}

// No device has room for what cannot be counted in bytes; what is made of these tensors is some ten times as
// much.
void require_countable(const Graph& graph);

// A plan of the job's mesh and stages, without Programs.
Plan empty_plan(const Job& job);

// Without places and events.
Lowered lower_in_order(const Graph& graph, const Mesh& mesh, const LowerOptions& options);

// When all Programs are there, and out.training: what moves between tiers, then places and events.
void finish(Compiled& out, const Job& job, const Moves* like, const Refusals& refusals = {});

}  // namespace hyperrun

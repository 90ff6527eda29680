// Passes that compiling a whole model and compiling a submodel share.
#pragma once

#include <string>

#include "runtime/base/flags.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/lower.h"

namespace hyperrun {

void write_dump(const std::string& phase, const std::string& printed);

// Dumps a phase if HYPERRUN_DUMP asks for it. `printed` is called only then: printing a large Program takes
// as long as making it.
void dump(const std::string& phase, const auto& printed) {
  if (!flags().dump_dir.empty()) write_dump(phase, printed());
}

// Refuses a model whose sizes in bytes might overflow 64 bits. The limit is on the tensors of one forward
// pass; all buffers together take about ten times as much.
void require_countable(const Graph& graph);

// A plan with the job's mesh and stages, without Programs.
Plan empty_plan(const Job& job);

// Lowers a graph and orders its instructions. The Program has neither offsets nor events.
Lowered lower_in_order(const Graph& graph, const Mesh& mesh, const LowerOptions& options);

// The last passes, once `out` has all Programs and the training graph: offload plans and transfers, offsets,
// events, verification.
void assign_memory_and_events(Compiled& out, const Job& job, const Moves* like,
                              const Refusals& refusals = {});

}  // namespace hyperrun

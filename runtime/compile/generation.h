// The graphs of a generation: a model that takes tokens of sequences which it has in a cache.
#pragma once

#include "runtime/ir/graph.h"
#include "runtime/ir/job.h"
#include "runtime/ir/requests.h"

namespace hyperrun {

// Whether weights have masters in float32, of which each pass begins with copies, as they are trained in the
// same Plan; or are what products take.
enum class Weights : bool { kAlone = false, kWithMasters = true };

// Of a pass that takes `tokens` of each of `batch` sequences; not yet sharded.
Graph generation_graph(const Job& job, const GenerationShape& shape, std::int64_t batch, std::int64_t tokens,
                       Weights weights);

}  // namespace hyperrun

// The graphs of what is not trained: a generation, where a model takes tokens of sequences which it has in a
// cache, and the scoring of whole texts.
#pragma once

#include "runtime/ir/graph.h"
#include "runtime/ir/job.h"
#include "runtime/ir/requests.h"

namespace hyperrun {

// Whether weights have masters in float32, of which each pass begins with copies, as they are trained in the
// same Plan; or are what products take.
enum class Weights : bool { kAlone = false, kWithMasters = true };

// Into how many parts the job's rules cut a batch that all numbers of devices divide.
std::int64_t parts_of_batch(const Job& job);

// Of a pass that takes `tokens` of each of `batch` sequences; not yet sharded.
Graph generation_graph(const Job& job, const GenerationShape& shape, std::int64_t batch, std::int64_t tokens,
                       Weights weights);

// Of a pass that takes as many whole sequences as a micro-batch of the job's training, by weights alone; not
// yet sharded.
Graph scoring_graph(const Job& job);

}  // namespace hyperrun

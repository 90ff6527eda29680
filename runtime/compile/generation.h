// Builds the graphs of forward passes without training: generation with a key-value cache, and scoring of
// whole texts.
#pragma once

#include "runtime/ir/graph.h"
#include "runtime/ir/job.h"
#include "runtime/ir/requests.h"

namespace hyperrun {

// kWithMasters: weights are float32 masters that are trained in the same Plan; each pass begins with copies
// in the data type of products. kAlone: weights have that data type themselves.
enum class Weights : bool { kAlone = false, kWithMasters = true };

// The number of parts into which the job's rules split a batch that every number of devices divides.
std::int64_t parts_of_batch(const Job& job);

// The graph of a pass that takes `tokens` of each of `batch` sequences; not yet sharded.
Graph generation_graph(const Job& job, const GenerationShape& shape, std::int64_t batch, std::int64_t tokens,
                       Weights weights);

// The graph of a pass that scores as many whole sequences as a micro-batch of the job's training; not yet
// sharded. Weights are Weights::kAlone.
Graph scoring_graph(const Job& job);

}  // namespace hyperrun

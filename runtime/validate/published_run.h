// Training steps that others have measured on real machines and published.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

struct PublishedRun {
  std::string set;          // "one node"
  bool calibrates = false;  // figures of a profile may be fitted to this run; else it only judges them
  std::int32_t devices = 1;
  std::int32_t batch = 1, micro_batch = 1;  // sequences of a step, and of a micro-batch of one replica
  std::int32_t hidden = 0, heads = 0, layers = 0, sequence = 0;
  std::int32_t tensor = 1, data = 1, pipeline = 1;  // devices along each dimension
  double milliseconds = 0;
  std::string place;  // "runs.csv:7"

  std::int32_t micro_batches() const { return batch / micro_batch / data; }
  // The work of simulating the run, roughly; runs with more work are begun first.
  std::int64_t work() const { return std::int64_t{layers} * pipeline; }
};

// Reads runs from a CSV file. Its first line names the columns: devices, batch, micro_batch, hidden, heads,
// layers, sequence, tp, dp, pp, milliseconds, and optionally set and use ("calibration" or "judged"). Lines
// that begin with # are comments. Throws kBadValue with file:line for a line that is no such run, and for a
// run that both calibrates and is judged.
std::vector<PublishedRun> read_runs(std::string_view csv, const std::string& path);

// The runs that come with hyperrun: runs.csv, which names their source.
std::vector<PublishedRun> shipped_runs();

// The run as a job of `micro_batches` that trains a GPT like Megatron-LM. Tensor parallelism varies fastest
// with the rank, then data, then pipeline parallelism. Layers are recomputed whole; products have 16-bit
// operands, and gradients are exchanged in 16 bits; there is no ZeRO.
Job job_of(const PublishedRun& run, std::int32_t micro_batches);

}  // namespace hyperrun

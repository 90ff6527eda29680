// Steps of training that others have measured on real machines, and published.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

struct PublishedRun {
  std::string set;          // "one node"
  bool calibrates = false;  // numbers of a profile may have been fitted to it; else it is there to judge them
  std::int32_t devices = 1, batch = 1, micro_batch = 1;  // sequences of a step, of all and of one
  std::int32_t hidden = 0, heads = 0, layers = 0, sequence = 0;
  std::int32_t tensor = 1, data = 1, pipeline = 1;  // devices along each dimension
  double milliseconds = 0;
  std::string place;  // "runs.csv:7"

  std::int32_t micro_batches() const { return batch / micro_batch / data; }
  // To simulate it, about in proportion: runs that are much work are begun first.
  std::int64_t work() const { return std::int64_t{layers} * pipeline; }
};

// Lines of a CSV file, after a line that names the columns: devices, batch, micro_batch, hidden, heads,
// layers, sequence, tp, dp, pp, milliseconds; and set and use ("calibration" or "judged"), which may be
// missing. Lines that begin with # are comments. Throws kBadValue with file:line for what is no such run,
// and for one that calibrates and is judged.
std::vector<PublishedRun> read_runs(std::string_view csv, const std::string& path);

// Those that hyperrun brings along: runs.csv, where their source stands.
std::vector<PublishedRun> shipped_runs();

// The run as a job of `micro_batches`: a GPT in Megatron-LM's manner. Along the devices' numbers come tensor,
// data and pipeline parallelism, layers are recomputed whole, products take 16-bit operands, gradients
// are exchanged in as many, and there is no ZeRO.
Job job_of(const PublishedRun& run, std::int32_t micro_batches);

}  // namespace hyperrun

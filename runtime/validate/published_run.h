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
  double milliseconds = 0;                          // 0: not measured
  double gibibytes = 0;                             // the most that a device had allocated; 0: not measured
  // "gpt2"; "llama"; "deepseek_v3": latent attention and experts of the sizes that DeepSeek-V3 has.
  std::string model = "gpt2";
  std::int32_t kv_heads = 0, ffn = 0;  // 0: heads, and 4 x hidden
  std::int32_t vocabulary = 51200;     // default: the padded one of Megatron-LM's GPT
  std::int32_t context = 1,
               expert = 1;         // devices of context parallelism; of `data` those of expert parallelism
  std::int32_t dense_layers = 0;   // before the first with experts
  bool sequence_parallel = false;  // along the devices of tensor parallelism
  std::int32_t zero = 0;           // ZeRO 0 to 3
  bool recomputes = true;          // every layer
  std::string gradients = "bfloat16";  // as they are exchanged
  std::string profile, software;       // of this run; empty: as the caller chooses, and none
  std::string place;                   // "runs.csv:7"

  std::int32_t micro_batches() const { return batch / micro_batch / data; }
  // The work of simulating the run, roughly; runs with more work are begun first.
  std::int64_t work() const { return std::int64_t{layers} * pipeline; }
};

// Reads runs from a CSV file. Its first line names the columns: devices, batch, micro_batch, hidden, heads,
// layers, sequence, tp, dp, pp, at least one of milliseconds and gib, and any of the columns that
// docs/validation.md lists. Lines that begin with # are comments. Throws kBadValue with file:line for a line
// that is no such run, and for a run that both calibrates and is judged.
std::vector<PublishedRun> read_runs(std::string_view csv, const std::string& path);

// The runs that come with hyperrun: runs.csv and b200_runs.csv, which name their sources.
std::vector<PublishedRun> shipped_runs();

// The run as a job of `micro_batches` that trains like Megatron-LM. Tensor parallelism varies fastest with
// the rank, then context, expert, data and pipeline parallelism. Products have 16-bit operands.
Job job_of(const PublishedRun& run, std::int32_t micro_batches);

}  // namespace hyperrun

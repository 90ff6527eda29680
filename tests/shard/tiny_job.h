// The smallest Llama that every preset divides.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun::testing {

struct Parallel {
  std::string name;
  int dp = 1, tp = 1;
  std::vector<std::string> presets;
};

inline std::ostream& operator<<(std::ostream& out, const Parallel& p) { return out << p.name; }

inline Job tiny_job(const Parallel& parallel, int layers = 1) {
  Job job;
  job.supernode.devices = parallel.dp * parallel.tp;
  job.supernode.hbm = Bytes(std::int64_t{4} << 20);
  job.model = {.layers = layers,
               .hidden = 16,
               .heads = 8,
               .kv_heads = 4,
               .head_dim = 4,
               .ffn = 32,
               .vocab = 64,
               .sequence = 8};
  job.parallel.mesh = {{"dp", parallel.dp}, {"tp", parallel.tp}};
  job.parallel.presets = parallel.presets;
  job.training.steps = 4;
  job.training.batch = 4;
  job.training.lr = 1e-3;
  return job;
}

}  // namespace hyperrun::testing

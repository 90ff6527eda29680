#include "tests/support/jobs.h"

namespace hyperrun::testing {

Job small_job(int dp, int tp, const std::vector<std::string>& more_presets) {
  Job job;
  job.name = "small";
  job.supernode.devices = dp * tp;
  job.supernode.hbm = Bytes(std::int64_t{16} << 20);
  job.model.layers = 2;
  job.model.hidden = 64;
  job.model.heads = 8;
  job.model.kv_heads = 4;
  job.model.head_dim = 8;
  job.model.ffn = 128;
  job.model.vocab = 320;
  job.model.sequence = 32;
  job.parallel.mesh = {{"dp", dp}, {"tp", tp}};
  job.parallel.presets = {"dp", "tp"};
  job.parallel.presets.insert(job.parallel.presets.end(), more_presets.begin(), more_presets.end());
  job.training.steps = 20;
  job.training.batch = 8;
  job.training.lr = 3e-3;
  job.training.min_lr = 3e-4;
  job.training.warmup_steps = 3;
  return job;
}

}  // namespace hyperrun::testing

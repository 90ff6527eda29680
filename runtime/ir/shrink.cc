#include "runtime/ir/shrink.h"

namespace hyperrun {

Job with_fewer_layers(const Job& job) {
  const std::int32_t by = job.run.shrink.depth;
  Job less = job;
  less.run.shrink.depth = 1;
  less.model.layers /= by;
  ExpertsSpec& experts = less.model.experts;
  experts.dense_layers = (experts.dense_layers + by - 1) / by;
  for (PipelineSpec::Stage& stage : less.parallel.pipeline.stages) stage.layers /= by;
  for (RecomputeSpec& spec : less.training.recompute) spec.first_layer /= by, spec.last_layer /= by;
  return less;
}

Job shrunk(const Job& job) {
  const ShrinkSpec by = job.run.shrink;
  Job small = with_fewer_layers(job);
  small.run.shrink = {};
  ModelSpec& m = small.model;
  for (std::int32_t* width : {&m.hidden, &m.head_dim, &m.ffn, &m.experts.ffn, &m.latent.q_rank,
                              &m.latent.kv_rank, &m.latent.nope_dim, &m.latent.rope_dim, &m.latent.value_dim})
    *width /= by.width;
  m.vocab /= by.vocab;
  m.sequence /= by.sequence;
  m.positions /= by.sequence;
  m.experts.capacity.group /= by.sequence;
  small.training.batch /= by.batch;
  return small;
}

}  // namespace hyperrun

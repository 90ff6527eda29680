#include "runtime/ir/shrink.h"

#include <algorithm>

namespace hyperrun {
namespace {

// Pages get fewer positions each. Where a page has too few positions to divide, there are fewer pages.
void shrink(InferenceSpec& spec, const ShrinkSpec& by) {
  const std::int64_t positions = std::int64_t{spec.pages / by.batch} * spec.page / by.sequence;
  spec.slots /= by.batch, spec.prompts /= by.batch;
  spec.context /= by.sequence;
  spec.chunk /= by.sequence;
  spec.page = std::max(1, spec.page / by.sequence);
  spec.pages = static_cast<std::int32_t>(positions / spec.page);
}

// The layers of which a model with one in `by` layers has a part: each stands for the first of `by`.
template <class Has>
std::vector<LayerRange> every_other(std::int32_t layers, std::int32_t by, Has has) {
  std::vector<LayerRange> ranges;
  for (std::int32_t l = 0; l < layers; ++l) {
    if (!has(l * by)) continue;
    if (!ranges.empty() && ranges.back().last_layer == l - 1)
      ranges.back().last_layer = l;
    else
      ranges.push_back({l, l});
  }
  return ranges;
}

}  // namespace

Job with_fewer_layers(const Job& job) {
  const std::int32_t by = job.run.shrink.depth;
  Job less = job;
  less.run.shrink.depth = 1;
  less.model.layers /= by;
  ExpertsSpec& experts = less.model.experts;
  experts.dense_layers = (experts.dense_layers + by - 1) / by;
  if (!experts.dense.empty() && by > 1)
    experts.dense = every_other(less.model.layers, by,
                                [&](std::int32_t l) { return any_has(job.model.experts.dense, l); });
  std::vector<LayerRange>& windows = less.model.window_layers;
  if (!windows.empty() && by > 1) {
    windows = every_other(less.model.layers, by,
                          [&](std::int32_t l) { return any_has(job.model.window_layers, l); });
    if (windows.empty()) less.model.window = 0;
  }
  for (PipelineSpec::Stage& stage : less.parallel.pipeline.stages) stage.layers /= by;
  for (RecomputeSpec& spec : less.training.recompute) spec.first_layer /= by, spec.last_layer /= by;
  return less;
}

Job shrunk(const Job& job) {
  const ShrinkSpec by = job.run.shrink;
  Job small = with_fewer_layers(job);
  small.run.shrink = {};
  ModelSpec& m = small.model;
  for (std::int32_t* width :
       {&m.hidden, &m.head_dim, &m.ffn, &m.experts.ffn, &m.latent.q_rank, &m.latent.kv_rank,
        &m.latent.nope_dim, &m.latent.rope_dim, &m.latent.value_dim, &m.rotary_dim})
    *width /= by.width;
  m.vocab /= by.vocab;
  m.sequence /= by.sequence;
  m.positions /= by.sequence;
  if (m.window > 0) m.window = std::max(1, m.window / by.sequence);
  for (auto* factors : {&m.rope_scaling.short_factor, &m.rope_scaling.long_factor})
    factors->resize(factors->size() / static_cast<std::size_t>(by.width));
  m.experts.capacity.group /= by.sequence;
  small.training.batch /= by.batch;
  shrink(small.inference, by);
  return small;
}

}  // namespace hyperrun

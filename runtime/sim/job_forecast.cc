#include "runtime/sim/job_forecast.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/ir/families.h"
#include "runtime/ir/score_pairs.h"

namespace hyperrun {
namespace {

double seconds(Nanos t) { return static_cast<double>(t.value) * 1e-9; }

std::int64_t attention_weights(const ModelSpec& m) {
  const std::int64_t hidden = m.hidden, heads = m.heads, q = heads * m.head_dim;
  const LatentSpec& l = m.latent;
  if (l.kv_rank == 0) return 2 * hidden * q + 2 * hidden * m.kv_heads * m.head_dim;
  const std::int64_t queries = l.q_rank > 0 ? l.q_rank * (hidden + q) : hidden * q;
  const std::int64_t keys =
      hidden * (l.kv_rank + l.rope_dim) + l.kv_rank * heads * (l.nope_dim + l.value_dim);
  return queries + keys + heads * l.value_dim * hidden;
}

}  // namespace

double model_flops(const ModelSpec& m, std::int64_t sequences) {
  const double tokens = static_cast<double>(sequences) * m.sequence;
  const std::int64_t hidden = m.hidden, further = m.mtp.layers, layers = m.layers + further;
  const ExpertsSpec& e = m.experts;
  std::int64_t with_experts = 0, pairs = 0;  // layers; twice the pairs of one head in all layers
  for (std::int32_t l = 0; l < layers; ++l) {
    with_experts += e.in_layer(l) ? 1 : 0;
    pairs += double_pairs(m.sequence, m.sequence, l < m.layers ? m.window_of(l) : 0);
  }
  // Tokens beyond an expert's capacity are not computed.
  const double kept = e.capacity.factor > 0 && e.capacity.drop ? std::min(1.0, e.capacity.factor) : 1.0;
  const double mixture = static_cast<double>(hidden * e.count) +
                         3.0 * static_cast<double>(hidden * e.ffn) * (kept * e.choices + e.shared);
  const std::int64_t matrices = family_of(m).learned_positions ? 2 : 3;  // a GELU has no gate beside it
  const std::int64_t without_experts = layers * attention_weights(m) +
                                       (layers - with_experts) * matrices * hidden * m.ffn +
                                       further * 2 * hidden * hidden + (1 + further) * hidden * m.vocab;
  const double weights = static_cast<double>(without_experts) + static_cast<double>(with_experts) * mixture;
  // Causal attention computes half of the scores, or fewer in a window. Two products forward and four
  // backward, two FLOPs a multiplication.
  const std::int64_t value_dim = m.latent.kv_rank > 0 ? m.latent.value_dim : m.head_dim;
  const double attention =
      3.0 * static_cast<double>(sequences) * static_cast<double>(pairs) * m.heads * (m.head_dim + value_dim);
  return 6 * tokens * weights + attention;
}

JobForecast forecast(const Job& job, const Plan& plan, const Topology& topology, const SimOptions& options) {
  JobForecast f;
  f.high_water.resize(plan.roles.size());
  for (const Program& p : plan.roles.front().programs) {
    SimResult r = simulate(plan, p.name, job.supernode, topology, options);
    for (std::size_t role = 0; role < r.roles.size(); ++role)
      for (std::size_t t = 0; t < kTiers; ++t)
        f.high_water[role][t] = std::max(f.high_water[role][t], r.roles[role].high_water[t]);
    if (p.name == "init")
      f.init = std::move(r);
    else if (p.name == "train")
      f.train = std::move(r);
  }
  f.step = f.train.makespan;
  if (const std::int64_t most = (INT64_MAX - f.init.makespan.value) / std::max<std::int64_t>(1, f.step.value);
      job.training.steps > most)
    throw Error(Code::kBadValue, std::to_string(job.training.steps) + " steps of " + to_string(f.step) +
                                     " would take longer than 290 years")
        .at("training.steps")
        .legal("up to " + std::to_string(most))
        .fix("take fewer steps");
  f.total = f.init.makespan + f.step * job.training.steps;
  f.model_flops = model_flops(job.model, job.training.batch);
  const double step = seconds(f.step);
  if (step <= 0) return f;
  const double devices = static_cast<double>(plan.mesh.devices());
  const DType type = job.training.precision == kBfloat16 ? DType::kBF16 : DType::kF32;
  const double offered = machine_of(job.supernode).cube.of(type).value * step * devices;
  f.tokens_per_second = static_cast<double>(job.training.batch) * job.model.sequence / step;
  f.mfu = f.model_flops / offered;
  f.hfu = f.train.matrix_flops / offered;
  return f;
}

}  // namespace hyperrun

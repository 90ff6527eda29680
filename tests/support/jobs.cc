#include "tests/support/jobs.h"

#include <algorithm>
#include <sstream>

#include "runtime/ir/pipeline.h"

namespace hyperrun::testing {
namespace {

ParallelSpec parallel_of(const std::string& words) {
  ParallelSpec parallel;
  const auto add = [&](const std::string& preset) {
    if (std::find(parallel.presets.begin(), parallel.presets.end(), preset) == parallel.presets.end())
      parallel.presets.push_back(preset);
  };
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    const std::size_t colon = word.find(':');
    const std::string name = word.substr(0, colon);
    if (name == "gpipe" || name == "1f1b" || name == "interleaved" || name == "zero_bubble") {
      parallel.pipeline.schedule = name;
      continue;
    }
    if (name == "bf16") continue;
    if (name == "chunks") {
      parallel.pipeline.chunks = std::stoi(word.substr(colon + 1));
      continue;
    }
    if (colon != std::string::npos) parallel.mesh.push_back({name, std::stoi(word.substr(colon + 1))});
    if (name == "pp")
      parallel.pipeline.axis = name;
    else
      add(name == "tpx" || name == "tpy" ? "tp2d" : name);
  }
  return parallel;
}

}  // namespace

Job small_job(const std::string& parallel) {
  Job job = small_job(1, 1);
  job.parallel = parallel_of(parallel);
  for (const MeshAxis& axis : job.parallel.mesh) job.supernode.devices *= axis.size;
  set_layers(job, job.model.layers);
  if (parallel.find("bf16") != std::string::npos) job.training.precision = kBfloat16;
  return job;
}

void become_deepseek(Job& job) {
  ModelSpec& m = job.model;
  m.name = "deepseek_v3";
  m.kv_heads = m.heads;
  m.latent = {.q_rank = 24, .kv_rank = 16, .nope_dim = 8, .rope_dim = 4, .value_dim = 10};
  m.head_dim = m.latent.nope_dim + m.latent.rope_dim;
  m.experts = {.count = 8,
               .choices = 2,
               .ffn = 24,
               .shared = 1,
               .dense_layers = 1,
               .scoring = "sigmoid",
               .scale = 2.5,
               .bias_rate = 0.001,
               .groups = 4,
               .group_choices = 2};
  m.mtp.layers = 1;
}

void become_gpt2(Job& job) {
  job.model.name = "gpt2";
  job.model.kv_heads = job.model.heads;
  job.model.tied_head = true;
  job.model.positions = job.model.sequence + 8;
}

void set_layers(Job& job, int layers) {
  job.model.layers = layers;
  PipelineSpec& pipeline = job.parallel.pipeline;
  for (const MeshAxis& axis : job.parallel.mesh)
    if (axis.name == pipeline.axis) pipeline.stages = even_stages(axis.size, pipeline.chunks, layers);
}

std::string test_title(const std::string& parallel) {
  std::string title = parallel;
  std::erase_if(title, [](char c) { return c == ' ' || c == ':'; });
  return title;
}

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

// Draws small jobs of all kinds from a seed.
#pragma once

#include <random>

#include "runtime/ir/job.h"

namespace hyperrun::testing {

inline Job random_job(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<int> list) { return list.begin()[random() % list.size()]; };
  Job job;
  const int dp = one_of({1, 1, 2, 4}), tp = one_of({1, 1, 2, 4});
  job.supernode.devices = dp * tp;
  job.supernode.hbm = Bytes(std::int64_t{64} << 20);
  ModelSpec& m = job.model;
  m.layers = one_of({1, 2, 3});
  m.kv_heads = tp * one_of({1, 2});
  m.heads = m.kv_heads * one_of({1, 2, 3});
  m.head_dim = one_of({2, 4, 8});
  m.hidden = 4 * one_of({1, 3, 4, 8});
  m.ffn = tp * one_of({3, 8, 20});
  m.vocab = tp * one_of({17, 32});
  m.sequence = tp * one_of({2, 5, 8});
  m.tied_head = one_of({0, 1}) == 1;
  TrainingSpec& t = job.training;
  t.steps = 5;
  t.micro_batches = one_of({1, 1, 2, 3});
  t.batch = dp * t.micro_batches * one_of({1, 2});
  t.lr = 1e-3;
  t.clip_norm = one_of({0, 1});
  job.parallel.mesh = one_of({0, 1}) == 1 ? std::vector<MeshAxis>{{"dp", dp}, {"tp", tp}}
                                          : std::vector<MeshAxis>{{"tp", tp}, {"dp", dp}};
  job.parallel.presets = {"dp", "tp"};
  if (one_of({0, 1}) == 1) job.parallel.presets.emplace_back("sp");
  if (one_of({0, 1}) == 1) job.parallel.presets.emplace_back("zero1");
  if (one_of({0, 0, 1}) == 1 && m.hidden % tp == 0)  // the embedding split the other way
    job.parallel.rules = {{"embed", {{"vocab", {}}, {"hidden", {"tp"}}}, "test"}};
  job.run.generate.tokens = one_of({0, 2});
  return job;
}

}  // namespace hyperrun::testing

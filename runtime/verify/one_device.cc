#include "runtime/verify/one_device.h"

#include <algorithm>
#include <cmath>

#include "runtime/compile/compile.h"
#include "runtime/model/text/sampler.h"
#include "runtime/model/text/synthetic.h"
#include "runtime/verify/execution.h"
#include "runtime/verify/reference.h"

namespace hyperrun {

Job for_one_device(Job job) {
  job.supernode.devices = 1;
  job.parallel = {};
  job.memory = {};
  job.training.recompute.clear();
  return job;
}

std::vector<std::int32_t> made_up_text(const Job& job, std::int64_t steps) {
  constexpr std::int64_t kMost = std::int64_t{1} << 22;
  const std::int64_t tokens = (steps + 1) * job.training.batch * job.model.sequence + 1;
  return synthetic_tokens(
      job.model.vocab,
      static_cast<std::size_t>(std::max(std::min(tokens, kMost), job.model.sequence + std::int64_t{1})));
}

std::vector<StepLoss> losses_of_one_device(const Job& job, std::int64_t steps) {
  const Job one = for_one_device(job);
  const Compiled compiled = compile(one);
  const Merged merged = merge(compiled, {});
  const std::vector<std::int32_t> text = made_up_text(job, steps);
  const Sampler sampler(text, job.model.sequence, job.training.batch, job.run.seed);
  const Feed feed = feed_of(sampler);
  const bool rounds = job.training.precision == kBfloat16 || job.parallel.gradients == kBfloat16;
  Reference reference(merged.graph, rounds);
  Execution plain(one, compiled.plan, merged, feed, [&](int, const auto&... of) { reference.keep(of...); });
  Execution perturbed(one, compiled.plan, merged, feed,
                      [&](int, const auto&... of) { reference.keep_perturbed(of...); });
  std::vector<StepLoss> losses;
  double noise = 0;
  for (std::int64_t step = -1; step < steps; ++step) {
    for (Execution* execution : {&plain, &perturbed}) execution->run(step < 0 ? "init" : "train", step);
    reference.end_step();
    if (step < 0) continue;
    const double loss = plain.output("loss");
    losses.push_back({loss, 0});
    noise = std::max(noise, std::abs(perturbed.output("loss") - loss) / std::abs(loss));
  }
  const double tokens = static_cast<double>(job.training.batch) * job.model.sequence;
  for (StepLoss& s : losses) s.allowed = allowed_difference(noise, tokens, rounds);
  return losses;
}

}  // namespace hyperrun

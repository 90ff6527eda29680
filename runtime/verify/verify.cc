#include "runtime/verify/verify.h"

#include "runtime/base/error.h"
#include "runtime/model/text/sampler.h"
#include "runtime/verify/comparison.h"
#include "runtime/verify/execution.h"
#include "runtime/verify/one_device.h"

namespace hyperrun {
namespace {

// A value that rounding alone may change by this share of itself says nothing about a layout.
constexpr double kMeaningless = 0.5;

void count(Verification& to, const Compared& c) {
  KindSummary& kind = to.kinds[static_cast<std::size_t>(c.kind)];
  if (kind.compared++ == 0 || c.share() > kind.worst.share()) kind.worst = c;
  if (!c.diverges()) return;
  ++to.diverging;
  if (!to.first) to.first = c;
}

}  // namespace

std::int64_t Verification::compared() const {
  std::int64_t n = 0;
  for (const KindSummary& kind : kinds) n += kind.compared;
  return n;
}

const Compared& Verification::worst() const {
  const KindSummary* worst = kinds.data();
  for (const KindSummary& kind : kinds)
    if (kind.worst.share() > worst->worst.share()) worst = &kind;
  return worst->worst;
}

Verification verify_layout(const Job& job, const Compiled& compiled, std::int64_t steps) {
  const Job one_job = for_one_device(job);
  const Compiled one_compiled = compile(one_job);
  const std::vector<std::int32_t> text = made_up_text(job, steps);
  const Sampler sampler(text, job.model.sequence, job.training.batch, job.run.seed);
  const Feed feed = feed_of(sampler);
  const Merged sharded = merge(compiled, job.parallel.pipeline);
  const Merged single = merge(one_compiled, {});
  const Counterparts known = counterparts(sharded.graph, single.graph);
  const bool rounds = job.training.precision == kBfloat16 || job.parallel.gradients == kBfloat16;
  Reference reference(single.graph, rounds);
  Comparison comparison(sharded, compiled.plan.mesh, reference, known, job.training.micro_batches);
  Execution one(one_job, one_compiled.plan, single, feed,
                [&](int, const auto&... of) { reference.keep(of...); });
  Execution perturbed(one_job, one_compiled.plan, single, feed,
                      [&](int, const auto&... of) { reference.keep_perturbed(of...); });
  Execution many(job, compiled.plan, sharded, feed, [&](const auto&... of) { comparison.add(of...); });

  Verification result;
  result.own_parts = known.own_parts;
  result.others = known.others;
  for (std::int64_t step = -1; step < steps; ++step) {
    const char* program = step < 0 ? "init" : "train";
    one.run(program, step);
    perturbed.run(program, step);
    comparison.begin_step(step);
    many.run(program, step);
    reference.end_step();
    for (const Compared& c : comparison.take()) {
      if (c.allowed > kMeaningless && !c.disagreeing)
        ++result.noise;
      else
        count(result, c);
    }
  }
  return result;
}

}  // namespace hyperrun

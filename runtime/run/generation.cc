#include "runtime/run/generation.h"

#include <utility>

#include "runtime/compile/compile.h"
#include "runtime/inference/requests_io.h"
#include "runtime/run/results.h"

namespace hyperrun {
Generation::Generation(const Job& job, const Plan& plan, std::vector<std::int32_t> ends, double patience)
    : plan_(plan),
      prefill_(static_cast<std::int32_t>(plan.program_index("prefill"))),
      decode_(static_cast<std::int32_t>(plan.program_index("decode"))),
      slots_(generation_shape(job).slots),
      batcher_(generation_shape(job), std::move(ends), patience) {}

std::optional<tasks::Invocation> Generation::next() {
  const std::optional<GenerationPass> pass = batcher_.next();
  if (!pass) return std::nullopt;
  under_way_ = pass->prefill ? prefill_ : decode_;
  tasks::Invocation invocation;
  invocation.program = under_way_;
  invocation.data = to_bytes(pass->requests);
  return invocation;
}

bool Generation::is_pass(const tasks::Invocation& invocation) const {
  return invocation.program == prefill_ || invocation.program == decode_;
}

std::vector<SampledToken> Generation::done(std::span<const tasks::InvocationDone> results) {
  const auto parts = parts_of(results);
  const auto program = static_cast<std::size_t>(under_way_);
  return batcher_.done(whole_output_as<std::int32_t>(plan_, program, "token", parts),
                       whole_output_as<float>(plan_, program, "logp", parts));
}

}  // namespace hyperrun

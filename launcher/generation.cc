#include "launcher/generation.h"

#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/inference/requests_io.h"

namespace hyperrun {
namespace {

// Every device that draws draws all of them.
std::vector<std::int32_t> tokens_of(std::span<const control::InvocationDone> results, std::int64_t rows) {
  for (const control::InvocationDone& r : results) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t row = 0; row < rows; ++row)
      if (const auto found = r.outputs.find(rows == 1 ? "token" : "token." + std::to_string(row));
          found != r.outputs.end())
        tokens.push_back(static_cast<std::int32_t>(found->second));
    if (std::ssize(tokens) == rows) return tokens;
  }
  HR_CHECK(false, "no device has drawn tokens");
  return {};
}

}  // namespace

Generation::Generation(const Job& job, const Plan& plan, std::vector<std::int32_t> ends)
    : prefill_(static_cast<std::int32_t>(plan.program_index("prefill"))),
      decode_(static_cast<std::int32_t>(plan.program_index("decode"))),
      batcher_(generation_shape(job), std::move(ends)) {}

std::optional<control::Invocation> Generation::next() {
  const std::optional<GenerationPass> pass = batcher_.next();
  if (!pass) return std::nullopt;
  rows_ = std::ssize(pass->requests.ids) / pass->requests.tokens;
  control::Invocation invocation;
  invocation.program = pass->prefill ? prefill_ : decode_;
  invocation.data = to_bytes(pass->requests);
  return invocation;
}

bool Generation::is_pass(const control::Invocation& invocation) const {
  return invocation.program == prefill_ || invocation.program == decode_;
}

std::vector<Grown> Generation::done(std::span<const control::InvocationDone> results) {
  return batcher_.done(tokens_of(results, rows_));
}

}  // namespace hyperrun

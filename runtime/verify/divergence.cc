
#include <fmt/core.h>

#include "runtime/verify/verify.h"

namespace hyperrun {
namespace {

std::string when(const Job& job, const Compared& c) {
  if (c.step < 0) return "in the initial state";
  std::string text = fmt::format("in step {}", c.step + 1);
  if (job.training.micro_batches > 1) text += fmt::format(", micro-batch {}", c.micro_batch + 1);
  return text;
}

}  // namespace

std::string describe_difference(double difference) { return fmt::format("{:.1e}", difference); }

Error divergence(const Job& job, const Verification& verification) {
  HR_CHECK(verification.first.has_value());
  const Compared& c = *verification.first;
  std::string cause = when(job, c) + ": ";
  if (c.disagreeing)
    cause += fmt::format("devices {} and {} hold different values of the same part", c.disagreeing->first,
                         c.disagreeing->second);
  else
    cause += "differs from one device by " + describe_difference(c.difference) + " of its norm";
  cause += fmt::format("; made by {} ({}), layout {}; the first of {} that differ", c.node, c.operation,
                       c.layout, verification.diverging);
  return Error(Code::kNotEqual, cause)
      .at(c.tensor)
      .legal((c.allowed > 0 ? "a difference of up to " + describe_difference(c.allowed)
                            : std::string("no difference")) +
             ", the same bits on all devices that hold a part");
}

}  // namespace hyperrun


#include "runtime/base/format.h"
#include "runtime/verify/verify.h"

namespace hyperrun {
namespace {

std::string when(const Job& job, const Compared& c) {
  if (c.step < 0) return "in the initial state";
  std::string text = "in step " + std::to_string(c.step + 1);
  if (job.training.micro_batches > 1) text += ", micro-batch " + std::to_string(c.micro_batch + 1);
  return text;
}

}  // namespace

std::string difference_words(double difference) { return format("%.1e", difference); }

Error divergence(const Job& job, const Verification& verification) {
  HR_CHECK(verification.first.has_value());
  const Compared& c = *verification.first;
  std::string cause = when(job, c) + ": ";
  if (c.disagreeing)
    cause += "devices " + std::to_string(c.disagreeing->first) + " and " +
             std::to_string(c.disagreeing->second) + " hold different values of the same part";
  else
    cause += "differs from one device by " + difference_words(c.difference) + " of its norm";
  cause += "; made by " + c.node + " (" + c.operation + "), layout " + c.layout + "; the first of " +
           std::to_string(verification.diverging) + " that differ";
  return Error(Code::kNotEqual, cause)
      .at(c.tensor)
      .legal((c.allowed > 0 ? "a difference of up to " + difference_words(c.allowed)
                            : std::string("no difference")) +
             ", the same bits on all devices that hold a part");
}

}  // namespace hyperrun

// A layout beside one device: the same job and seed, every tensor compared.
//
// The job's programs run on devices that are threads of this process, without MPI, and on one device. What
// each instruction leaves is taken when it has ended: slices are put together, partial results reduced, and
// replicas must agree in every bit. So the first tensor that differs names the instruction that is wrong.
// The text is made up: a layout computes the same as one device on any.
//
// How much may differ is measured. A sum that is split over devices is rounded in another order, and what
// follows from it may magnify that: differences of nearly equal values, AdamW's division by the gradient's
// own size. So one device runs a second time, from weights that are changed in their last bit, and a tensor
// may differ by 300 times what that changes of it, in the norm of the difference over the tensor's norm, and
// by 1e-5 in any case. In bfloat16 it is that format's last bit, 8 times, and 2^-7 and more of a few elements
// (docs/verify.md). A row that is missing or twice in one of a hundred thousand is 3e-3. Tokens and the
// initial state must be equal.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/verify/counterpart.h"

namespace hyperrun {

// A value that one device and many have.
struct Compared {
  std::int64_t step = -1;  // -1: the initial state
  int micro_batch = 0;
  std::string tensor, node, operation, layout;  // of the sharded graph
  ValueKind kind = ValueKind::kActivation;
  double difference = 0;  // relative
  double allowed = 0;
  std::optional<std::pair<int, int>> disagreeing;  // devices that should hold the same and do not

  bool diverges() const { return disagreeing || !(difference <= allowed); }
  // The difference in parts of what is allowed.
  double share() const { return difference == 0 ? 0 : difference / allowed; }
};

struct KindSummary {
  std::int64_t compared = 0;  // values: a tensor counts in each micro-batch and step
  Compared worst;
};

struct Verification {
  std::array<KindSummary, kValueKinds> kinds;
  int own_parts = 0, others = 0;  // tensors that were not compared, see counterpart.h
  std::int64_t noise = 0;         // values that were not, as rounding alone changes them by half or more
  std::int64_t diverging = 0;
  std::optional<Compared> first;  // that diverges, in the order of the graph

  std::int64_t compared() const;
  const Compared& worst() const;
};

// `compiled`: of the job, which is compiled anew for one device. Arenas are as large as the plans ask for;
// all values that one device makes in a step are kept until the step ends.
Verification verify_layout(const Job& job, const Compiled& compiled, std::int64_t steps);

std::string difference_words(double difference);  // "6.1e-07"

// kNotEqual, at the first tensor that diverges; there is one.
Error divergence(const Job& job, const Verification& verification);

}  // namespace hyperrun

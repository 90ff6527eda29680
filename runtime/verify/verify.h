// Verifies a layout: compares every tensor with that of one device, for the same job and seed.
//
// The job's programs run on devices that are threads of this process, without MPI, and on one device. The
// outputs of each instruction are taken when it has ended: slices are put together, partial results reduced,
// and replicas must agree in every bit. So the first tensor that differs names the faulty instruction. The
// text is made up, because a layout must compute the same as one device on any text.
//
// The allowed difference is measured. A sum split over devices is rounded in another order, and later
// operators may magnify that: differences of nearly equal values, AdamW's division by the gradient's own
// size. Therefore one device runs a second time, from weights changed in their last bit. A tensor may differ
// by 300 times the effect of that, as the norm of the difference over the tensor's norm, and at least by
// 1e-5. In bfloat16 the last bit is that of bfloat16, the factor 8, and the least 2^-7, more for few elements
// (docs/verify.md). For comparison, one row of a hundred thousand that is missing or doubled makes 3e-3.
// Tokens and the initial state must be equal.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/verify/counterpart.h"

namespace hyperrun {

// The comparison of one value.
struct Compared {
  std::int64_t step = -1;  // -1: the initial state
  int micro_batch = 0;
  std::string tensor, node, operation, layout;  // names in the sharded graph
  ValueKind kind = ValueKind::kActivation;
  double difference = 0;  // relative difference
  double allowed = 0;
  std::optional<std::pair<int, int>> disagreeing;  // devices that should hold the same and do not

  bool diverges() const { return disagreeing || !(difference <= allowed); }
  // The difference as a share of the allowed one.
  double share() const { return difference == 0 ? 0 : difference / allowed; }
};

struct KindSummary {
  std::int64_t compared = 0;  // number of values; a tensor has one in each micro-batch and step
  Compared worst;
};

struct Verification {
  std::array<KindSummary, kValueKinds> kinds;
  int own_parts = 0, others = 0;  // tensors that were not compared (counterpart.h)
  std::int64_t noise = 0;         // values not compared, because rounding alone changes them by half or more
  std::int64_t diverging = 0;
  std::optional<Compared> first;  // the first that diverges, in the order of the graph

  std::int64_t compared() const;
  const Compared& worst() const;
};

// Verifies `compiled`, the compiled job; the job is compiled again for one device. Arenas are as large as the
// plans ask for. All values of one device are kept until the step ends.
Verification verify_layout(const Job& job, const Compiled& compiled, std::int64_t steps);

std::string describe_difference(double difference);  // "6.1e-07"

// The error kNotEqual at the first tensor that diverges; there must be one.
Error divergence(const Job& job, const Verification& verification);

}  // namespace hyperrun

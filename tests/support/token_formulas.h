// Formulas of losses over tokens, one row for each, and of the update, in double precision.
#pragma once

#include "tests/support/interpreter.h"

namespace hyperrun::testing {

// The softmax of rows of logits times `scale`: for each row exp(logit - most), the greatest logit `most`, the
// sum of the exponentials, and the target's logit (0 where there is no target).
struct SoftmaxRows {
  Values e, most, sum, target;
};
SoftmaxRows softmax_rows(const Values& logits, const Values& targets, double scale);

// The inputs of op::CrossEntropyGrad (runtime/ir/graph.h).
struct CrossEntropyRows {
  const Values &e, &own_max, &most, &sum, &targets;
};
Values cross_entropy_gradient(const CrossEntropyRows& rows, const Values& weights, double scale);

// AdamW (Loshchilov, Hutter 2019): weights and moments after step `t`, from 1 on.
struct Moments {
  Values w, m, v;
};
Moments adamw(const op::AdamW& how, Moments before, const Values& gradient, double lr, double t);

// The inputs of a policy's loss (docs/policy.md).
struct PolicyRows {
  const Values &logp, &targets, &weight, &advantage, &behaviour, &reference;
};
Values policy_sums(const PolicyRows& rows, double clip, double kl);      // loss, kl, clipped, ratio
Values policy_gradient(const PolicyRows& rows, double clip, double kl);  // gradient of the loss by logp

}  // namespace hyperrun::testing

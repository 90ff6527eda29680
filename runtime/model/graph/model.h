// A model is a file that builds a Graph; nothing else knows its name.
#pragma once

#include "runtime/ir/graph.h"

namespace hyperrun {

// What a model is built for.
struct ModelUse {
  std::int64_t batch = 1;  // sequences that one pass takes, all devices together
  double loss_scale = 1;   // training: multiplies the sum of the tokens' losses
  double init_std = 0.02;
  bool generate = false;  // instead of a loss: a token behind those that each sequence brings
  // To generate: tokens of a sequence that a pass takes; positions of a sequence, at most; and of the cache
  // the positions of a page, and pages (of all sequences together).
  std::int64_t tokens = 0, context = 0, page = 0, pages = 0;
  std::int64_t parts = 1;  // of a page, each of which another device may hold
  double temperature = 0;
  std::int32_t top_k = 0;
  double top_p = 1;
};

// Names that the rest of the compiler may rely on: the dims "batch" and "seq", the data tensors "ids"
// and "targets" (to generate, "requests" in its place), and in outputs "loss" (training) or "token"
// (generation).
Graph build_model(const ModelSpec& model, const ModelUse& use);

}  // namespace hyperrun

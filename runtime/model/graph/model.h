// A model is a file that builds a Graph; nothing else knows its name.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

enum class Purpose : std::uint8_t {
  kTrain,     // the cross entropy of a text
  kGenerate,  // a token behind those that each sequence brings
  kScore,     // the log probability of each target
  kPolicy,    // the loss of a policy on what it has written
  kTexts,     // the cross entropy of given texts, whose positions have weights; and of each target as kScore
};

// What a model is built for.
struct ModelUse {
  std::int64_t batch = 1;  // sequences that one pass takes, all devices together
  double loss_scale = 1;   // training: multiplies the sum of the tokens' losses (of kTexts their weights do
                           // that), and of what is beside them
  double init_std = 0.02;
  Purpose purpose = Purpose::kTrain;
  // To generate: tokens of a sequence that a pass takes; positions of a sequence, at most; and of the cache
  // the positions of a page, and pages (of all sequences together).
  std::int64_t tokens = 0, context = 0, page = 0, pages = 0;
  std::int64_t parts = 1;  // of a page, each of which another device may hold
  double temperature = 0;  // by which logits are divided; to generate, 0: the likeliest token is taken
  std::int32_t top_k = 0;
  double top_p = 1;
  double clip = 0, kl = 0;  // of a policy, see PolicySpec
  // Of a sub-model (runtime/compose/submodel.h), which has ports: their slots (0: it is a whole model), the
  // layers that it has (-1: to the last) and, where it begins a text model, what that takes features of.
  std::int64_t slots = 0;
  std::int32_t first_layer = 0, end_layer = -1;
  struct Features {
    std::string name;
    std::int64_t items = 0, tokens = 0;
  };
  std::vector<Features> features;

  bool generates() const { return purpose == Purpose::kGenerate; }
  bool trains() const {
    return purpose == Purpose::kTrain || purpose == Purpose::kPolicy || purpose == Purpose::kTexts;
  }
};

// Names that the rest of the compiler may rely on: the dims "batch" and "seq", the data tensors "ids"
// and "targets" (to generate, "requests" in its place; of an encoder "inputs"), and in outputs "loss"
// (training, and of a policy with it "kl", "clipped" and "ratio"), "logp" (scoring, and of given texts beside
// the loss), or "token" and its "logp" (generation). Ports are called as runtime/compose/submodel.h says.
Graph build_model(const ModelSpec& model, const ModelUse& use);

}  // namespace hyperrun

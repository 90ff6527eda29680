// Builds models as Graphs. runtime/ir/families.h lists them.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

enum class Purpose : std::uint8_t {
  kTrain,     // the cross entropy of a text
  kGenerate,  // the next token of each sequence
  kScore,     // the log probability of each target
  kPolicy,    // the loss of a policy on its own completions
  kTexts,     // the cross entropy of given texts with weighted positions, and the outputs of kScore
};

// The use for which a model is built.
struct ModelUse {
  std::int64_t batch = 1;  // sequences of one pass, on all devices together
  // Training: factor of the sum of the tokens' losses and of auxiliary losses. With kTexts the weights
  // replace it for the former.
  double loss_scale = 1;
  double init_std = 0.02;
  Purpose purpose = Purpose::kTrain;
  // Generation only.
  std::int64_t tokens = 0;   // tokens of a sequence that a pass takes
  std::int64_t context = 0;  // most positions of a sequence
  std::int64_t page = 0;     // positions of a page of the cache
  std::int64_t pages = 0;    // pages of all sequences together
  std::int64_t parts = 1;    // parts of a page, each of which another device may hold
  double temperature = 0;    // divides the logits; in a generation 0 takes the likeliest token
  std::int32_t top_k = 0;
  double top_p = 1;
  double clip = 0, kl = 0;  // kPolicy only, see PolicySpec
  // Submodels only (runtime/compose/submodel.h).
  std::int64_t slots = 0;                        // slots of its ports; 0: a whole model
  std::int32_t first_layer = 0, end_layer = -1;  // layers [first_layer, end_layer); -1: to the last
  // The encoders whose features the first part of a text model takes.
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

// Builds the graph of a model. The rest of the compiler may rely on these names:
//   dims      "batch", "seq"
//   data      "ids" and "targets"; in a generation "requests" instead of targets; in an encoder "inputs"
//   outputs   training: "loss"; with a policy also "kl", "clipped" and "ratio"; with given texts also "logp"
//             scoring: "logp"; generation: "token" and its "logp"
//   ports     see runtime/compose/submodel.h
Graph build_model(const ModelSpec& model, const ModelUse& use);

}  // namespace hyperrun

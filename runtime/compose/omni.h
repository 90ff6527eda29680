// The compiler for a job with encoders: each encoder, and each stage of the text model, a sub-model
// (submodel.h) on devices of its own or of others as well, and the exchanges between their ports.
#pragma once

#include <string>
#include <vector>

#include "runtime/compose/programs.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

struct OmniPlan {
  struct Encoder {
    CompiledProgram program;
    // Replicas that a pass may go to: their ranks, and the item of the plan's batch that each begins with.
    std::vector<std::vector<int>> replicas;
    std::vector<std::int64_t> first_item;
    std::int64_t items = 0;   // of a pass
    std::int64_t passes = 0;  // of a micro-batch, at most
  };
  std::vector<Encoder> encoders;        // in the job's order
  std::vector<CompiledProgram> stages;  // of the text model, in the order of the forward pass
  // For all ranks of the job, a role each; its Programs are named below. An invocation's slot is that of the
  // port: the micro-batch, or of features (micro-batch * passes + pass).
  Plan exchange;
};

// Of the exchange's Programs: from an encoder's replica to the first stage and of the gradients back, and
// from a stage to the one behind it and of the gradients back.
std::string features_program(std::size_t encoder, std::size_t replica);
std::string feature_gradients_program(std::size_t encoder, std::size_t replica);
std::string stream_program(std::size_t stage);
std::string stream_gradient_program(std::size_t stage);  // to `stage`

// `most_items`: of each encoder, those of a micro-batch at most. Throws kBadLayout, kBadValue or kDoesNotFit.
OmniPlan compile_omni(const Job& job, const std::vector<std::int64_t>& most_items);

// Its plans on their ranks, the exchange on all.
std::vector<NamedPlan> plans_of(const OmniPlan& plan, int ranks);

}  // namespace hyperrun

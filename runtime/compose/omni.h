// The compiler for a job with encoders. Each encoder and each stage of the text model is a sub-model
// (submodel.h); sub-models may share devices. A further plan has the exchanges between their ports.
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
    std::vector<std::vector<int>> replicas;  // ranks of each replica; a pass runs on one replica
    std::vector<std::int64_t> first_item;    // by replica, its first item of the plan's batch
    std::int64_t items = 0;                  // items of a pass
    std::int64_t passes = 0;                 // largest number of passes for a micro-batch
  };
  std::vector<Encoder> encoders;        // in the job's order
  std::vector<CompiledProgram> stages;  // stages of the text model, in the order of the forward pass
  // The exchanges, with one role for each rank of the job. The functions below name its Programs. The slot of
  // an invocation is that of the ports: the micro-batch or, for features, micro-batch * passes + pass.
  Plan exchange;
};

// The names of the exchange's Programs. Features go from a replica of an encoder to the first stage, the
// residual stream from a stage to the next one; the gradients of both go back.
std::string features_program(std::size_t encoder, std::size_t replica);
std::string feature_gradients_program(std::size_t encoder, std::size_t replica);
std::string stream_program(std::size_t stage);
std::string stream_gradient_program(std::size_t stage);  // for the gradient that goes back to `stage`

// `most_items` is the largest number of items in a micro-batch, by encoder. Throws kBadLayout, kBadValue or
// kDoesNotFit.
OmniPlan compile_omni(const Job& job, const std::vector<std::int64_t>& most_items);

// All plans with their ranks. The exchange is on all ranks of the job.
std::vector<NamedPlan> plans_of(const OmniPlan& plan, int ranks);

}  // namespace hyperrun

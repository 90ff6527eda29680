// Generation on devices: turns the batcher's passes into invocations, and their results into tokens.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/inference/batcher.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

class Generation {
 public:
  // The plan must have the Programs "prefill" and "decode", and outlive the object. `ends` and `patience` are
  // those of Batcher.
  Generation(const Job& job, const Plan& plan, std::vector<std::int32_t> ends = {}, double patience = 0);

  void add(Prompt prompt) { batcher_.add(std::move(prompt)); }

  // Whether a further prompt would start at once; see Batcher.
  bool has_room() const { return batcher_.has_room(); }
  std::int64_t slots() const { return slots_; }

  // The invocation of the next pass, with program and data set. nullopt if a pass is under way, or if all
  // sequences have ended.
  std::optional<tasks::Invocation> next();
  bool is_pass(const tasks::Invocation& invocation) const;
  bool is_prefill(const tasks::Invocation& invocation) const { return invocation.program == prefill_; }
  bool was_prefill() const { return under_way_ == prefill_; }  // whether the last pass was one
  // Takes the results of the pass under way. Returns the tokens that it has added.
  std::vector<SampledToken> done(std::span<const tasks::InvocationDone> results);

 private:
  const Plan& plan_;
  std::int32_t prefill_, decode_;
  std::int64_t slots_;
  Batcher batcher_;
  std::int32_t under_way_ = 0;  // Program of the last pass
};

}  // namespace hyperrun

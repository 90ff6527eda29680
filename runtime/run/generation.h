// Sequences that grow on the devices: passes become invocations, and their results tokens.
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
  // The plan has "prefill" and "decode", and outlives it. `ends`, `patience`: see Batcher.
  Generation(const Job& job, const Plan& plan, std::vector<std::int32_t> ends = {}, double patience = 0);

  void add(Prompt prompt) { batcher_.add(std::move(prompt)); }

  // See Batcher.
  bool has_room() const { return batcher_.has_room(); }
  std::int64_t slots() const { return slots_; }

  // Program and data are set. None: a pass is under way, or all have grown up.
  std::optional<tasks::Invocation> next();
  bool is_pass(const tasks::Invocation& invocation) const;
  bool is_prefill(const tasks::Invocation& invocation) const { return invocation.program == prefill_; }
  bool was_prefill() const { return under_way_ == prefill_; }  // the last pass
  std::vector<SampledToken> done(std::span<const tasks::InvocationDone> results);

 private:
  const Plan& plan_;
  std::int32_t prefill_, decode_;
  std::int64_t slots_;
  Batcher batcher_;
  std::int32_t under_way_ = 0;  // program of the last pass
};

}  // namespace hyperrun

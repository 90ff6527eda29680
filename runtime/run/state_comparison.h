// Compares the state that several devices hold, by the hashes that they report.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/ir/shared_parts.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

class StateComparison {
 public:
  // `plan` must outlive the object.
  explicit StateComparison(const Plan& plan) : plan_(plan), parts_(shared_parts(plan)) {}

  // Throws kCorrupt if devices that hold the same part of a tensor hold other bits. The error names those in
  // the minority, or all of them if there is none. `results` are those of kCompareProgram after `step` steps,
  // by device; the last comparison without such a difference was after `clean` steps. `hosts` are by device.
  void require_equal(std::span<const tasks::InvocationDone> results, std::int64_t step, std::int64_t clean,
                     const std::vector<std::string>& hosts) const;

 private:
  const Plan& plan_;
  const std::vector<SharedPart> parts_;
};

}  // namespace hyperrun

// A fault that the controller injects into a device (run.chaos): its form in an invocation, and its
// commission.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/ir/job.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

// Adds the fault to an invocation: the device finds it when it begins with the invocation.
void set_fault(tasks::Invocation& invocation, const FaultSpec& fault);
// The fault that the invocation brings to this device.
std::optional<FaultSpec> fault_of(const tasks::Invocation& invocation, std::int32_t device);

// Whether the invocation brings a fault of this kind, to whatever device.
bool brings(const tasks::Invocation& invocation, std::string_view kind);

// A fault of a start, as an environment variable carries it to the processes: "kill:3" for the third, with
// ":TIME" for one that happens at this Unix time in ns. Only kind, process and time count.
std::string to_text(const FaultSpec& fault, int process);

// Commits the faults of a process: "kill", "stop" and "slow", at once or, beside the process's work, at their
// time. `cut` ends the connection to the controller; what it refers to must outlive the process's work.
// Others are left to whom they concern.
void commit(const FaultSpec& fault, const std::function<void()>& cut);
// Commits the fault of a start, in the form of to_text(), if it is this process's.
void commit_at_start(const std::string& text, int process, const std::function<void()>& cut);

}  // namespace hyperrun

#include "runtime/rank/device.h"

#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "runtime/base/error.h"
#include "runtime/device/plan_world.h"
#include "runtime/rank/fault.h"
#include "runtime/rank/protocol.h"
#include "runtime/rank/sessions.h"

namespace hyperrun {
namespace {

constexpr std::chrono::microseconds kServeInterval{100};  // how often a waiting device serves other hosts

}  // namespace

Device::Device(const Parts& parts, const SharedSessions& shared) : parts_(parts) {
  const PlanDevice::SharedParts common{parts_.memory, parts_.world, parts_.link.status(parts_.number),
                                       parts_.progress, parts_.thread_per_stream};
  int first_key = 0;
  for (std::size_t s = 0; s < shared.sessions.size(); ++s) {
    const Session& session = shared.sessions[s];
    const bool mine = device_of(session, parts_.number) >= 0;
    plans_.push_back(mine ? std::make_unique<PlanDevice>(session, shared.tokens[s], first_key, common)
                          : nullptr);
    first_key += keys_of(session.plan);
  }
}

void Device::serve() {
  for (;;) {
    const tasks::Command command = next_command();
    if (std::holds_alternative<tasks::Shutdown>(command)) return;
    HR_CHECK(std::holds_alternative<tasks::Invocation>(command), "programs are loaded once");
    invoke(std::get<tasks::Invocation>(command));
  }
}

// A device that shares its thread lets the others run meanwhile. One that serves other hosts keeps MPI
// progressing: they may access the memory of this process.
tasks::Command Device::next_command() {
  const int number = parts_.number;
  if (parts_.sharer == nullptr && !parts_.serves_other_hosts) return parts_.link.next(number);
  const auto limit = parts_.sharer == nullptr ? kServeInterval : std::chrono::microseconds(0);
  for (bool again = false;; again = true) {
    if (std::optional<tasks::Command> command = parts_.link.next_within(number, limit))
      return *std::move(command);
    if (parts_.serves_other_hosts) parts_.world.progress();
    if (parts_.sharer != nullptr) parts_.sharer->yield(again);
  }
}

void Device::invoke(const tasks::Invocation& invocation) {
  control::DeviceStatus& status = parts_.link.status(parts_.number);
  status.last_instruction = -1;
  status.invocation = invocation.id;
  const auto session = static_cast<std::size_t>(invocation.program / kProgramsOfASession);
  if (const auto fault = fault_of(invocation, parts_.number)) commit(*fault, [&] { parts_.link.cut(); });
  HR_CHECK(session < plans_.size() && plans_[session] != nullptr, "an invocation of another device");
  tasks::InvocationDone done = plans_[session]->run(invocation.program % kProgramsOfASession, invocation);
  done.id = invocation.id;
  parts_.link.report(parts_.number, std::move(done));
}

}  // namespace hyperrun

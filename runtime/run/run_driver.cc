#include "runtime/run/run_driver.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/rank/protocol.h"

namespace hyperrun {
RunDriver::RunDriver(tasks::DeviceGroups groups, tasks::TaskScheduler::Options options,
                     std::span<const Session> sessions, Recorder* recorder)
    : TaskDriver(std::move(groups), options), sessions_(sessions), recorder_(recorder) {}

std::vector<tasks::Driver::Assignment> RunDriver::on_ready(const std::vector<tasks::DeviceInfo>& devices) {
  if (recorder_ != nullptr) recorder_->begin(devices);
  start();
  return {{{0, "sessions", to_bytes(sessions_)}, {}}};
}

void RunDriver::on_failed(const Error& cause) {
  if (failed_) failed_(cause);
}

void RunDriver::issuing(tasks::Invocation& invocation, std::span<const std::int32_t> devices) {
  const std::int32_t program = invocation.program % kProgramsOfASession;
  const bool saves = program == kSaveProgram || program == kSavePartProgram,
             computes = program < kSaveProgram;
  if (chaos_ == nullptr || !(saves || computes)) return;  // comparing and copying are no parts of a step
  chaos_->add_fault(invocation, saves,
                    [&](std::int32_t d) { return std::ranges::find(devices, d) != devices.end(); });
}

std::int32_t RunDriver::number(std::size_t session, std::string_view program) const {
  return number_of_index(session, static_cast<std::int32_t>(sessions_[session].plan.program_index(program)));
}

std::int32_t RunDriver::number_of_index(std::size_t session, std::int32_t index) {
  return static_cast<std::int32_t>(session) * kProgramsOfASession + index;
}

}  // namespace hyperrun

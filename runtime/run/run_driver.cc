#include "runtime/run/run_driver.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/rank/protocol.h"

namespace hyperrun {
namespace {

// A nan is printed without its sign, which has no meaning.
std::string text(double v) { return std::isnan(v) ? "nan" : fmt::format("{:f}", v); }

}  // namespace

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
  if (chaos_ == nullptr) return;
  const bool saves = invocation.program % kProgramsOfASession == kSaveProgram;
  chaos_->add_fault(invocation, saves,
                    [&](std::int32_t d) { return std::ranges::find(devices, d) != devices.end(); });
}

std::int32_t RunDriver::number(std::size_t session, std::string_view program) const {
  return number_of_index(session, static_cast<std::int32_t>(sessions_[session].plan.program_index(program)));
}

std::int32_t RunDriver::number_of_index(std::size_t session, std::int32_t index) {
  return static_cast<std::int32_t>(session) * kProgramsOfASession + index;
}

void RunDriver::require_finite(double loss, double grad_norm, std::int64_t step) {
  if (std::isfinite(loss) && std::isfinite(grad_norm)) return;
  throw Error(Code::kNotFinite,
              fmt::format("the loss is {}, the gradient norm is {}", text(loss), text(grad_norm)))
      .at(fmt::format("step {}", step))
      .fix("lower training.lr, lengthen training.warmup_steps or lower training.clip_norm");
}

}  // namespace hyperrun

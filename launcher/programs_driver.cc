#include "launcher/programs_driver.h"

#include <cmath>
#include <string>
#include <utility>

#include "launcher/failure.h"
#include "launcher/protocol.h"
#include "runtime/base/error.h"

namespace hyperrun {

ProgramsDriver::ProgramsDriver(tasks::DeviceGroups groups, tasks::TaskScheduler::Options options,
                               const std::vector<Session>& sessions, ProgramsRecorder& recorder)
    : TaskDriver(std::move(groups), options), sessions_(sessions), recorder_(recorder) {}

std::vector<tasks::Driver::Assignment> ProgramsDriver::on_ready(
    const std::vector<tasks::DeviceInfo>& devices) {
  recorder_.begin(devices);
  start();
  return {{{0, "sessions", to_bytes(std::span(sessions_))}, {}}};
}

void ProgramsDriver::on_failed(const Error& cause) {
  tell_failure(cause, [&] { recorder_.finish(); });
}

std::int32_t ProgramsDriver::number(std::size_t session, std::string_view program) const {
  return number_of_all(session, static_cast<std::int32_t>(sessions_[session].plan.program_index(program)));
}

std::int32_t ProgramsDriver::number_of_all(std::size_t session, std::int32_t program) {
  return static_cast<std::int32_t>(session) * kProgramsOfASession + program;
}

void ProgramsDriver::require_finite(double loss, double grad_norm, std::int64_t step) {
  if (std::isfinite(loss) && std::isfinite(grad_norm)) return;
  throw Error(Code::kNotFinite, "the loss or its gradient is not finite")
      .at("step " + std::to_string(step))
      .fix("lower training.lr or training.clip_norm");
}

}  // namespace hyperrun

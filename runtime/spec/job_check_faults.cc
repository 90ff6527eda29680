#include "runtime/spec/job_check_faults.h"

#include <fmt/core.h>

#include <string>

namespace hyperrun {

std::vector<Error> check_faults(const Job& job, const JobSource& source) {
  std::vector<Error> errors;
  const auto refuse = [&](std::size_t fault, const char* field, const std::string& cause) -> Error& {
    return errors.emplace_back(
        Error(Code::kBadValue, cause).at(source.place(fmt::format("run.chaos.fault[{}].{}", fault, field))));
  };
  const std::int32_t devices = job.supernode.devices, steps = job.training.steps;
  for (std::size_t f = 0; f < job.run.chaos.certain.size(); ++f) {
    const FaultSpec& fault = job.run.chaos.certain[f];
    if (fault.device >= devices)
      refuse(f, "device", fmt::format("there is no device {} of {}", fault.device, devices))
          .legal(fmt::format("0 to {}", devices - 1))
          .fix("choose one of them");
    if (fault.step > steps)
      refuse(f, "step", fmt::format("step {} is behind the last of {}", fault.step, steps))
          .legal(fmt::format("0 to {}", steps))
          .fix("choose an earlier step, or train for longer");
    if (fault.kind == kFullDiskFault && !fault.saving)
      refuse(f, "saving", "only a checkpoint needs the disk")
          .legal("saving: true")
          .fix("add it; the step is then that of the checkpoint");
    if (fault.back > 0 && fault.back <= fault.step)
      refuse(f, "back", fmt::format("it would be back at step {}, before it is gone", fault.back))
          .legal(fmt::format("0, or above {}", fault.step))
          .fix("choose a later step");
  }
  return errors;
}

}  // namespace hyperrun

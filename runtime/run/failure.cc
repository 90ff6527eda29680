#include "runtime/run/failure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "runtime/advise/paste.h"
#include "runtime/run/resume.h"

namespace hyperrun {

namespace {

constexpr std::int32_t kCheckpoints = 10;  // number suggested to a training that saves none

std::string resume_remedy(const Job& job, const std::filesystem::path& run_directory) {
  if (find_checkpoint(run_directory) != run_directory)
    return "start the job again with --resume " + run_directory.string();
  if (!job.run.resume.empty()) return "start the job again with --resume " + job.run.resume;
  if (job.run.checkpoint_every > 0)
    return fmt::format("start the job again: its first checkpoint was to come after step {}",
                       job.run.checkpoint_every);
  const std::int32_t every = std::max(1, job.training.steps / kCheckpoints);
  return fmt::format("there is no checkpoint to go on from; for one every {} steps, {}", every,
                     paste("run", fmt::format("checkpoint_every: {}", every)));
}

}  // namespace

Error with_resume_remedy(const Error& cause, const Job& job, const std::filesystem::path& run_directory) {
  if (cause.code() != Code::kDeviceLost && cause.code() != Code::kDeviceHung &&
      cause.code() != Code::kCorrupt)
    return cause;
  return Error(cause).fix(fmt::format("{}; {}", cause.remedy(), resume_remedy(job, run_directory)));
}

void report_failure(const Error& cause, const std::function<void()>& finish) {
  try {
    finish();
  } catch (const Error& also) {  // an error of the same kind most likely has the same cause, printed below
    if (also.code() != cause.code()) std::fprintf(stderr, "%s\n", also.what());
  }
  std::fprintf(stderr, "%s\n", cause.what());
}

}  // namespace hyperrun

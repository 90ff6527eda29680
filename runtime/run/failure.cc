#include "runtime/run/failure.h"

#include <algorithm>
#include <cstdio>

#include "runtime/advise/paste.h"
#include "runtime/run/resume.h"

namespace hyperrun {

namespace {

constexpr std::int32_t kCheckpoints = 10;  // that a training without any is told to save

std::string way_on(const Job& job, const std::filesystem::path& run_directory) {
  if (find_checkpoint(run_directory) != run_directory)
    return "start the job again with --resume " + run_directory.string();
  if (!job.run.resume.empty()) return "start the job again with --resume " + job.run.resume;
  if (job.run.checkpoint_every > 0)
    return "start the job again: its first checkpoint was to come after step " +
           std::to_string(job.run.checkpoint_every);
  const std::int32_t every = std::max(1, job.training.steps / kCheckpoints);
  return "there is no checkpoint to go on from; for one every " + std::to_string(every) + " steps, " +
         paste("run", "checkpoint_every: " + std::to_string(every));
}

}  // namespace

Error with_way_on(const Error& cause, const Job& job, const std::filesystem::path& run_directory) {
  if (cause.code() != Code::kDeviceLost && cause.code() != Code::kDeviceHung) return cause;
  return Error(cause).fix(cause.remedy() + "; " + way_on(job, run_directory));
}

void tell_failure(const Error& cause, const std::function<void()>& finish) {
  try {
    finish();
  } catch (const Error& also) {  // the cause of both, most likely, and told below
    if (also.code() != cause.code()) std::fprintf(stderr, "%s\n", also.what());
  }
  std::fprintf(stderr, "%s\n", cause.what());
}

}  // namespace hyperrun

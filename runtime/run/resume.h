#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device/checkpoint_folder.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// `path` itself if it is a checkpoint; the last checkpoint in it if it is a run directory.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

// The checkpoints of a run directory that were saved after more than `step` steps.
std::vector<std::filesystem::path> checkpoints_after(const std::filesystem::path& run_directory,
                                                     std::int64_t step);

// Removes checkpoints that a killed device has left half written in a folder of checkpoints.
void remove_unfinished_checkpoints(const std::filesystem::path& checkpoints);

// Makes the job resume from `path`, the value of --resume. If `path` is empty, the job's own run.resume
// stays. Throws kMissingFile.
void set_resume(Job& job, const std::string& path);

// Checks that the checkpoint job.run.resume is of the job's model, and has the plan's tensors. Throws
// kBadCheckpoint or kMissingFile.
void check_checkpoint(const Job& job, const Plan& plan);

// Where a run begins: numbers of a step and of a sample, counted from 0.
struct ResumePoint {
  std::int64_t step = 0;
  std::int64_t sample = 0;     // the first that no step before has seen
  bool weights_alone = false;  // moments begin at zero: those of the checkpoint are of another kind of job
};

// The point where a run begins that resumes from job.run.resume. Throws unless check_checkpoint() holds and
// the seeds are equal: kBadCheckpoint, kMissingFile or kBadValue.
ResumePoint resume_point(const Job& job, const Plan& plan);
// The same. Throws kBadValue, too, if no step is left to do.
ResumePoint check_resume(const Job& job, const Plan& plan);

// A line about the checkpoint that a run starts from, and warnings if optimizer state is missing there, or if
// learning rates or samples are not those that would have followed (resume_changes.h).
std::string describe_start(const Job& job, const Plan& plan, const ResumePoint& first);

}  // namespace hyperrun

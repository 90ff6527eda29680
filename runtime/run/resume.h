#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// `path` itself if it is a checkpoint; the last checkpoint in it if it is a run directory.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

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
  std::int64_t sample = 0;  // the first that no step before has seen
};

// Checks that the job can resume from job.run.resume: check_checkpoint() holds, the seeds are equal, and
// steps are left to do. Throws kBadCheckpoint, kMissingFile or kBadValue.
ResumePoint check_resume(const Job& job, const Plan& plan);

// A line about the checkpoint that a run starts from, and warnings if optimizer state is missing there, or if
// learning rates or samples are not those that would have followed (resume_changes.h).
std::string describe_start(const Job& job, const Plan& plan, const ResumePoint& first);

}  // namespace hyperrun

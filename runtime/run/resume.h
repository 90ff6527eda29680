#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// A checkpoint, or the last one of a run directory.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

// The job goes on from `path`, that --resume has named; empty: from what it says itself, if anything. Throws
// kMissingFile.
void set_resume(Job& job, const std::string& path);

// Whether the job's model is in job.run.resume, as the plan holds it. Throws kBadCheckpoint or kMissingFile.
void check_checkpoint(const Job& job, const Plan& plan);

// Whether job.run.resume can be gone on from, before anything starts: its tensors are the plan's, its
// config.json is the job's model, it was trained with the job's seed, and there is something left to do.
// Returns the step that comes next. Throws kBadCheckpoint, kMissingFile or kBadValue.
std::int64_t check_resume(const Job& job, const Plan& plan);

// A line of what a run starts from, `first_step`, and what it has not.
std::string start_words(const Job& job, const Plan& plan, std::int64_t first_step);

}  // namespace hyperrun

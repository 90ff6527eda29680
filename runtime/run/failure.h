// The end of a failed run: its files and its error message.
#pragma once

#include <filesystem>
#include <functional>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"

namespace hyperrun {

// Calls `finish`, which writes the run's results so far, and then prints the cause. If `finish` throws an
// error of another kind, that is printed first.
void report_failure(const Error& cause, const std::function<void()>& finish);

// Adds a remedy for the lost work to the error of a lost, hung or corrupted device: the checkpoint from which
// the training can go on or, if there is none, the field that makes the next run save one. Other errors are
// returned unchanged.
Error with_resume_remedy(const Error& cause, const Job& job, const std::filesystem::path& run_directory);

}  // namespace hyperrun

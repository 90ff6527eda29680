// How a run ends that cannot go on.
#pragma once

#include <filesystem>
#include <functional>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"

namespace hyperrun {

// Writes what there is of the run, by `finish`, and says why it ended. What `finish` throws, too, is told
// before that, where it is something else.
void tell_failure(const Error& cause, const std::function<void()>& finish);

// The error of a lost or hung device with a remedy for the work that is lost, too: the checkpoint that a
// training goes on from or, where it has none, the field that leaves one the next time. Other errors come
// back as they are.
Error with_way_on(const Error& cause, const Job& job, const std::filesystem::path& run_directory);

}  // namespace hyperrun

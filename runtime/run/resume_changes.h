// The differences between a resumed run and the run that saved its checkpoint. They are legal, and
// may be meant.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/ir/job.h"

namespace hyperrun {

// Warnings about the learning rate and the samples from `first_step` on. Empty if nothing differs, or if the
// checkpoint does not lie in its run directory, whose job file has the former values.
std::string describe_resume_changes(const Job& job, const std::filesystem::path& checkpoint,
                                    std::int64_t first_step);

// The same for the former job.
std::string describe_resume_changes(const Job& job, const Job& former, std::int64_t first_step);

}  // namespace hyperrun

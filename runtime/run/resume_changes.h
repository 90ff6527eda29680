// The differences between a resumed run and the run that saved its checkpoint. They are legal, and
// may be meant.
#pragma once

#include <optional>
#include <string>

#include "runtime/ir/job.h"
#include "runtime/run/resume.h"

namespace hyperrun {

// The job with the values with which the checkpoint job.run.resume was trained, as far as learning rates and
// samples depend on them. An earlier version's checkpoint has none; its run directory's job has. nullopt: it
// does not lie in one, or the job runs to scale.
std::optional<Job> former_job(const Job& job);

// Lines about the learning rate and the samples from `first` on. Empty if nothing differs.
std::string describe_resume_changes(const Job& job, const Job& former, const ResumePoint& first);

}  // namespace hyperrun

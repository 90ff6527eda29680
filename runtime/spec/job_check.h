// Defaults that depend on other fields of a job, and rules between its fields.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// The purpose for which a job is read.
enum class JobUse : std::uint8_t {
  kAsItIs,
  kToBePlanned,   // for the planner: the job's parallelism, if it has any, is ignored
  kOfPrograms,    // jobs of several programs are taken as well
  kToBeForeseen,  // the same, but no device is started: fields of Need::kToRun may be left out
};

// Fills in kv_heads, head_dim, ffn, min_lr, the job's name and the origin of rules, where the job leaves them
// out. Each field must hold a legal value. Returns an error for each default that cannot be computed.
std::vector<Error> fill_defaults(Job& job, const JobSource& source);

// Checks the rules between fields of a job with all defaults. The compiler, which knows the tensors, checks
// that dimensions divide over the axes that split them.
std::vector<Error> check_job(const Job& job, const JobSource& source, JobUse use = JobUse::kAsItIs);

// The number of devices over which the presets split the batch.
std::int64_t data_parallel_size(const ParallelSpec& parallel);

}  // namespace hyperrun

// What no field says alone: defaults that follow from other fields, and rules between fields.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// What a job is read for.
enum class JobUse : std::uint8_t {
  kAsItIs,
  kToBePlanned,   // its parallelism, if it has any, is not looked at
  kOfPrograms,    // by who also takes one of several programs, which others refuse
  kToBeForeseen,  // the same, by who starts no device: the job may say nothing of Need::kToRun
};

// kv_heads, head_dim, ffn, min_lr, the job's name and the origin of rules, where the job leaves them out.
// The fields of the job hold legal values each. Returns what cannot be filled in.
std::vector<Error> fill_defaults(Job& job, const JobSource& source);

// Rules between fields of a job with all defaults. That tensors divide over the axes that split them is
// for the layouts to say: only the compiler knows the tensors.
std::vector<Error> check_job(const Job& job, const JobSource& source, JobUse use = JobUse::kAsItIs);

// The devices over which the presets split the batch.
std::int64_t data_parallel_size(const ParallelSpec& parallel);

}  // namespace hyperrun

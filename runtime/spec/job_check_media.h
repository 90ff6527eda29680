// Whether the programs of a job with encoders go together.
#pragma once

#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// The blocks that the job has, and which programs there are. Adds to `errors` what is wrong.
void check_media_blocks(const Job& job, const JobSource& source, std::vector<Error>& errors);

// Of a job whose blocks are in order: what encoders and the text model make of it.
void check_media(const Job& job, const JobSource& source, std::vector<Error>& errors);

// Of encoders what the job leaves out: ffn, four times as wide as the stream.
void fill_encoders(Job& job, const JobSource& source);

}  // namespace hyperrun

// Checks that the programs of a job with encoders go together.
#pragma once

#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// Checks which blocks and which programs the job has. Appends to `errors`.
void check_media_blocks(const Job& job, const JobSource& source, std::vector<Error>& errors);

// Checks the encoders against the text model, in a job whose blocks are in order. Appends to `errors`.
void check_media(const Job& job, const JobSource& source, std::vector<Error>& errors);

// Fills in the ffn of encoders where the job leaves it out: four times hidden.
void fill_encoders(Job& job, const JobSource& source);

}  // namespace hyperrun

// The model of a job that names a config.json (model.from).
#pragma once

#include "proto/job.pb.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// Replaces `from` by the fields that the file says. Those beside it have priority, also inside of blocks;
// lists are replaced as a whole. The places of the file's fields are in the file. Throws JobError if there is
// no sequence; kMissingFile, kBadCheckpoint.
void take_model_file(proto::Job& message, JobSource& source);

}  // namespace hyperrun

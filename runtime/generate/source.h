// The source of the weights of hyperrun generate: a run directory, a job with a checkpoint, or a checkpoint
// alone.
#pragma once

#include "runtime/generate/generate.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

struct GenerationSource {
  LoadedJob loaded;    // run.resume is the checkpoint
  bool alone = false;  // the source is a checkpoint, and the job was made for it
};

// Throws kMissingFile if there are no weights, kUsage if an argument does not go with the source, and the
// errors of load_job().
GenerationSource find_source(const GenerateArguments& arguments);

}  // namespace hyperrun

// Job lines for remedies: what to paste, and into which block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// `in training: micro_batches: 8`, or, if fields are replaced, `in training, replacing micro_batches:
// micro_batches: 8`. The named fields are to be deleted.
std::string paste(std::string_view block, std::string_view lines,
                  const std::vector<std::string>& replaced = {});

std::string presets_line(const std::vector<std::string>& presets);  // presets: ["dp", "zero1"]

// The lines that turn `from` into `to`, block by block. `source` tells which fields the job has, and so must
// replace. Empty if the jobs differ in nothing that a remedy changes.
std::string lines_to_paste(const JobSource& source, const Job& from, const Job& to);

}  // namespace hyperrun

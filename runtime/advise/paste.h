// Lines of a job for remedies: what to write, and in which block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// `in training: micro_batches: 8`, or `in training, replacing micro_batches: micro_batches: 8` where the
// field is there already: what is named there is taken out.
std::string paste(std::string_view block, std::string_view lines,
                  const std::vector<std::string>& replaced = {});

std::string presets_line(const std::vector<std::string>& presets);  // presets: ["dp", "zero1"]

// The lines that make `to` of `from`, block by block. `source`: the fields that the job has, of which it is
// said that they are replaced. Empty where the jobs differ in nothing that a remedy changes.
std::string lines_to_paste(const JobSource& source, const Job& from, const Job& to);

}  // namespace hyperrun

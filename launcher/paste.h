// Lines of a job for remedies: what to write, and in which block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

// `in training: micro_batches: 8`
std::string paste(std::string_view block, std::string_view lines);

std::string presets_line(const std::vector<std::string>& presets);  // presets: ["dp", "zero1"]

// The lines that make `to` of `from`, block by block; a field that is there already is
// replaced. Empty where they differ in nothing that a remedy changes.
std::string lines_to_paste(const Job& from, const Job& to);

}  // namespace hyperrun

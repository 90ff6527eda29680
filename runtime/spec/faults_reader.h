// Reads what fails and how often (proto/faults.proto), which is built in or a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/faults/fault_model.h"
#include "runtime/spec/kernel_table_reader.h"

namespace hyperrun {

// The built-in files in alphabetical order; generated from proto/profiles/faults when hyperrun is built.
std::vector<BuiltInText> built_in_faults();
bool is_built_in_faults(std::string_view name);

// Loads the built-in file or the file that `wanted` names; a relative path is looked up in the working
// directory. Throws kMissingFile with a list of the built-in ones when there is neither, and JobError with
// all errors of a file.
FaultModel load_faults(const std::string& wanted);

// Parses such a file from memory; `path` names it in messages.
FaultModel parse_faults(std::string_view text, const std::string& path);

}  // namespace hyperrun

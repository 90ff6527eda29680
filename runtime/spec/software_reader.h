// Reads a software profile (SoftwareProfile in proto/supernode.proto), which is built in or a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/spec/kernel_table_reader.h"

namespace hyperrun {

// The built-in software profiles in alphabetical order; generated from proto/profiles/software when hyperrun
// is built.
std::vector<BuiltInText> built_in_software();

bool is_built_in_software(std::string_view name);

// Loads the built-in software profile or the file that `wanted` names. A relative path is looked up beside
// `job_path`, then in the working directory. Throws kMissingFile with a list of those built in when there is
// neither, and JobError with all errors of a file.
Software load_software(const std::string& wanted, const std::string& job_path);

// Parses a software profile from memory; `path` names it in messages.
Software parse_software(std::string_view text, const std::string& path);

}  // namespace hyperrun

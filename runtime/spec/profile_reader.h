// Reads a profile (proto/supernode.proto), which is built in or a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/machine.h"

namespace hyperrun {

struct BuiltInProfile {
  std::string_view name, text;
};
// The built-in profiles in alphabetical order; generated from proto/profiles when hyperrun is built.
std::vector<BuiltInProfile> built_in_profiles();

bool is_built_in(std::string_view name);

// Loads the built-in profile or the file that `wanted` names. A relative path is looked up beside `job_path`,
// then in the working directory. Throws kMissingFile with a list of built-in profiles when there is neither,
// and JobError with all errors of a file.
Machine load_profile(const std::string& wanted, const std::string& job_path);

// Parses a profile from memory; `path` names it in messages.
Machine parse_profile(std::string_view text, const std::string& path);

}  // namespace hyperrun

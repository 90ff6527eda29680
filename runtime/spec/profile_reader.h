// Reads a supernode's profile (proto/supernode.proto): one of those that are built in, or a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/machine.h"

namespace hyperrun {

struct BuiltInProfile {
  std::string_view name, text;
};
// In alphabetical order; generated from proto/profiles when hyperrun is built.
std::vector<BuiltInProfile> built_in_profiles();

bool is_built_in(std::string_view name);

// What `wanted` names: a built-in profile, else a file; one that is not absolute is looked up beside
// `job_path`, then in the working directory. Throws kMissingFile when there is neither, listing what is built
// in; JobError with everything wrong in a file.
Machine load_profile(const std::string& wanted, const std::string& job_path);

// From memory; `path` names it in messages.
Machine parse_profile(std::string_view text, const std::string& path);

}  // namespace hyperrun

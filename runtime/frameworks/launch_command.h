// Finds the command of a script that starts the training, and takes its flags apart.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/frameworks/finding.h"
#include "runtime/frameworks/shell/script.h"

namespace hyperrun::frameworks {

struct ScriptSettings {
  std::vector<Setting> settings;
  std::vector<Assumption> notes;  // what the reader could not follow
};

// Flags lose their dashes, and underscores become dashes. What the launcher is told of devices has the names
// "launcher nnodes", "launcher per-node" and "launcher world"; its other flags begin with "launcher ".
// Throws kSyntax for a file that is no script, and kMissingField where no command starts anything.
ScriptSettings settings_of_script(const std::filesystem::path& path, std::string_view content,
                                  const shell::ScriptOptions& options);

// The same for a file that has arguments alone.
ScriptSettings settings_of_arguments(const std::filesystem::path& path, std::string_view content,
                                     const shell::ScriptOptions& options);

}  // namespace hyperrun::frameworks

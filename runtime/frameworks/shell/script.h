// Reads a launch script as a shell would, without running anything: assignments, arrays, conditions, loops
// and functions are followed, and the commands that it would start are listed with their expanded words.
//
// The environment counts as empty. What only a run would know stands in words as a mark (sources.h).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/frameworks/shell/sources.h"

namespace hyperrun::shell {

struct StartedCommand {
  std::vector<Text> words;
  std::uint32_t place = 0;
};

// Something that the reader could not follow, and what it did instead.
struct Note {
  std::uint32_t place = 0;
  std::string text;
};

struct Script {
  Sources sources;
  std::vector<StartedCommand> commands;  // those that have an option
  std::vector<Note> notes;
};

struct ScriptOptions {
  std::map<std::string, std::string> variables;       // of the environment
  std::optional<std::vector<std::string>> arguments;  // with which the script is called
};

// `path` names the script in messages; files that it sources are looked up beside it. Throws kSyntax.
Script read_script(const std::filesystem::path& path, std::string_view content, const ScriptOptions& options);

// Reads a list of arguments as if it stood in an array: ends of lines mean nothing. Its only command has
// them.
Script read_arguments(const std::filesystem::path& path, std::string_view content,
                      const ScriptOptions& options);

}  // namespace hyperrun::shell

// Turns a launch script or a configuration of another framework into a job.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/frameworks/finding.h"
#include "runtime/frameworks/framework.h"
#include "runtime/frameworks/reading.h"
#include "runtime/ir/job.h"

namespace hyperrun::frameworks {

struct RunImport {
  std::string from;  // name of the framework; empty: by content
  std::optional<std::int32_t> devices;
  std::string model;    // path of a config.json; empty: none
  std::string profile;  // empty: chosen by the framework
  std::optional<std::int32_t> vocab;
  std::map<std::string, std::string> variables;       // of a script's environment
  std::optional<std::vector<std::string>> arguments;  // with which a script is called
  std::string recipe;                                 // function of a Python file
};

struct ImportedRun {
  const Framework* framework = nullptr;
  std::vector<Finding> findings;
  std::vector<Assumption> assumptions, left_out, notes;
  Job job;           // with all defaults
  std::string text;  // as a textproto, with comments
};

// The framework of a configuration by its content. nullptr: not recognised.
const Framework* recognise(const std::filesystem::path& path, std::string_view content);

// Throws kMissingFile if the file cannot be read, and what the readers and the rules of jobs throw.
ImportedRun import_run(const std::filesystem::path& path, const RunImport& options);
ImportedRun import_run(const std::filesystem::path& path, std::string_view content, const RunImport& options);

// A table for people: each setting, and what the import made of it.
std::string import_report(const ImportedRun& run, const std::string& path);

}  // namespace hyperrun::frameworks

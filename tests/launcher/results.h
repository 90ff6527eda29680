// Readers of a run directory.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/report/metrics.h"
#include "tests/launcher/process.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {

// Values of metrics.jsonl, in order.
inline std::vector<double> losses(const std::filesystem::path& run_directory) {
  std::vector<double> all;
  for (const StepMetrics& m : read_metrics(run_directory / "metrics.jsonl")) all.push_back(m.loss);
  return all;
}

inline int occurrences(const std::string& text, std::string_view part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Every file below `directory`, relative to it, sorted.
inline std::vector<std::string> files_below(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) names.push_back(std::filesystem::relative(entry.path(), directory));
  std::sort(names.begin(), names.end());
  return names;
}

// Expects two checkpoints to have the same files, byte by byte.
inline void expect_same_files(const std::filesystem::path& one, const std::filesystem::path& other) {
  ASSERT_EQ(files_below(one), files_below(other));
  for (const std::string& file : files_below(one))
    EXPECT_EQ(content(one / file), content(other / file)) << file;
}

MATCHER(Succeeded, "ended with status 0") { return arg.status == 0 && !arg.timed_out; }

// Expects equal numbers up to another order of addition.
MATCHER_P2(RelativelyNear, expected, tolerance, "") {
  if (arg.size() != expected.size()) return false;
  for (std::size_t i = 0; i < arg.size(); ++i)
    if (!(std::abs(arg[i] - expected[i]) <= tolerance * std::abs(expected[i]))) {
      *result_listener << "element " << i << " is " << arg[i] << ", not " << expected[i];
      return false;
    }
  return true;
}

}  // namespace hyperrun::testing

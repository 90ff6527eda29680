#include "tests/support/golden.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

// The first line that differs, with its number.
std::string first_difference(const std::string& expected, const std::string& actual) {
  std::istringstream a(expected), b(actual);
  std::string x, y;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(a, x)), more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) return "nothing";
    if (more_a != more_b || x != y)
      return fmt::format("line {}\n  golden: {}\n  now:    {}", line, more_a ? x : "(end)",
                         more_b ? y : "(end)");
  }
}

}  // namespace

void expect_golden(const std::string& file, const std::string& text) {
  const std::string path = std::string(HYPERRUN_SOURCE_DIR "/") + file;
  if (std::getenv("HYPERRUN_UPDATE_GOLDEN") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(path) << text;
    return;
  }
  const std::string golden = content(path);
  EXPECT_TRUE(golden == text) << file << " differs at " << first_difference(golden, text)
                              << "\nif it is meant so: tools/update_golden";
}

}  // namespace hyperrun::testing

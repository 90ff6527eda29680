// Compares texts with golden files. After a wanted change HYPERRUN_UPDATE_GOLDEN=1 TEST writes the files
// anew; a person reads the change with git diff.
#pragma once

#include <string>

namespace hyperrun::testing {

// Fails the test with the first line that differs. `file` is relative to the project's folder.
void expect_golden(const std::string& file, const std::string& text);

}  // namespace hyperrun::testing

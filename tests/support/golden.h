// Texts that are compared with files that were written before. A change there is read by a person:
// HYPERRUN_UPDATE_GOLDEN=1 TEST writes the files anew, git diff shows what changed.
#pragma once

#include <string>

namespace hyperrun::testing {

// Fails the test with the first line that differs. `file`: below the project's folder.
void expect_golden(const std::string& file, const std::string& text);

}  // namespace hyperrun::testing

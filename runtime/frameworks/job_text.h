// A job as text for people: what its configuration said, each field with where it came from.
#pragma once

#include <string>

#include "runtime/frameworks/reading.h"

namespace hyperrun::frameworks {

// `flags`: settings are flags of a command, and have dashes in comments.
std::string job_text(const Reading& reading, const std::string& heading, bool flags);

}  // namespace hyperrun::frameworks

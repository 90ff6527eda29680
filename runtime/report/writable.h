#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/error.h"

namespace hyperrun {

// A kUnwritable of the file that `option` has named.
Error at_option(const std::string& option, const Error& e);

// Before the work begins of which the result is written there. Throws the same.
void require_writable(const std::filesystem::path& out, const std::string& option);

// The same of a picture, whose name says what is written into it: kUsage where that is not SVG.
void require_writable_svg(const std::filesystem::path& out, const std::string& option);

}  // namespace hyperrun

// The version of this hyperrun.
#pragma once

#include <string_view>

namespace hyperrun {

std::string_view version();       // "0.1.0"
std::string_view git_revision();  // "9f4b3ee0c1d2", "-dirty" after it if so; "" if built outside git

}  // namespace hyperrun

// The plan in the terms of another framework.
#pragma once

#include <string>

#include "runtime/frameworks/framework.h"
#include "runtime/ir/job.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// The fastest simulated plan that the framework can say, as text to paste. If it is not the first, the text
// says what the framework cannot say of the first.
std::string flags_text(const Job& job, const Search& search, const frameworks::Framework& framework);

}  // namespace hyperrun

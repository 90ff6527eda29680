// Writes a job; reading it back gives the same job.
#pragma once

#include <string>

#include "runtime/ir/job.h"

namespace hyperrun {

// With all defaults spelled out.
std::string to_textproto(const Job& job);
std::string to_binary(const Job& job);

// As text on one line, without what a reader fills in: defaults, and the places of rules.
std::string to_line(const Job& job);

}  // namespace hyperrun

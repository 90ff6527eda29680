// Writes a job; reading it back gives the same job.
#pragma once

#include <string>

#include "runtime/ir/job.h"

namespace hyperrun {

// The job with all defaults written out.
std::string to_textproto(const Job& job);
std::string to_binary(const Job& job);

// The job as text on one line, without defaults and the places of rules, which a reader fills in.
std::string to_line(const Job& job);

}  // namespace hyperrun

// Writes a job with all its defaults spelled out; reading it back gives the same job.
#pragma once

#include <string>

#include "runtime/ir/job.h"

namespace hyperrun {

std::string to_textproto(const Job& job);
std::string to_binary(const Job& job);

}  // namespace hyperrun

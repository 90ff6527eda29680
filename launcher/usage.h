// What CLI11 refuses, in the form that all errors have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {

// `app`: it has parsed the command line, and thrown `e`, which is no call for help.
Error not_understood(const CLI::App& app, const CLI::ParseError& e);

// Throws kUsage where the first word of the command line is neither a command nor a job: where it is nearly a
// command, or where another word follows, as a job does behind a command.
void require_command_or_job(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace hyperrun

// Errors of the command line: turns CLI11's parse errors into hyperrun's Error, with legal values and remedy.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {

// The error for `e`, which `app` threw while it parsed the command line. `e` must not be a request for help.
Error not_understood(const CLI::App& app, const CLI::ParseError& e);

// Throws kUsage if the first word is neither a command nor a job. It throws for a word that resembles a
// command, and for a word that another word follows, as a job would follow a command.
void require_command_or_job(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace hyperrun

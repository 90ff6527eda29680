// What CLI11 refuses, in the form that all errors have.
#pragma once

#include <CLI/CLI.hpp>

#include "runtime/base/error.h"

namespace hyperrun {

// `app`: it has parsed the command line, and thrown `e`, which is no call for help.
Error not_understood(const CLI::App& app, const CLI::ParseError& e);

}  // namespace hyperrun

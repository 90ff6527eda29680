// The start of a program in a process group of its own.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hyperrun::process {

using Environment =
    std::vector<std::pair<std::string, std::string>>;  // added to our environment, which it overrides

struct Redirection {
  int ours = -1;   // descriptor in this process
  int theirs = 0;  // descriptor in the program; below 16
};

enum class Lifetime : std::uint8_t {
  kOwn,
  kOurs,  // SIGTERM ends it when the thread that started it ends, for whatever reason
};

// Starts a program and returns its pid. Signals have their defaults in the program, and close-on-exec
// descriptors do not reach it. Throws kMpi if argv[0], found by PATH, cannot be run.
int start_process(const std::vector<std::string>& argv, const Environment& environment,
                  const std::vector<Redirection>& redirections, Lifetime lifetime = Lifetime::kOwn);

// Replaces this process by the program, which then gets its signals and gives its exit status. Throws kMpi if
// argv[0] cannot be run.
[[noreturn]] void become_process(const std::vector<std::string>& argv, const Environment& environment);

// Throws kMpi, as start_process would, unless a folder of PATH has the program.
void require_program(const std::string& name);

}  // namespace hyperrun::process

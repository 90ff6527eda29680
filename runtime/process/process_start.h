// Starting a program in a process group of its own.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hyperrun::control {

using Environment = std::vector<std::pair<std::string, std::string>>;  // added to ours, over ours

struct Redirection {
  int ours = -1;   // descriptor here
  int theirs = 0;  // what it is in the program; below 16
};

enum class Lifetime : std::uint8_t {
  kOwn,
  kOurs,  // SIGTERM when the thread that has started it ends, however that comes
};

// Throws kMpi when argv[0] (found by PATH) cannot be run. Signals are back at their defaults in
// the program; descriptors that are close-on-exec do not reach it.
int start_process(const std::vector<std::string>& argv, const Environment& environment,
                  const std::vector<Redirection>& redirections, Lifetime lifetime = Lifetime::kOwn);

// This process becomes the program: what is sent to it reaches the program, whose exit status is its own.
// Throws kMpi when argv[0] cannot be run.
[[noreturn]] void become_process(const std::vector<std::string>& argv, const Environment& environment);

// Throws kMpi, as start_process would, unless some folder of PATH has the program.
void require_program(const std::string& name);

}  // namespace hyperrun::control

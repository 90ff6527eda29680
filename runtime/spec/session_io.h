// What a device gets once, as bytes and back.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// A plan and what it needs to run: all that there is to a job of one program.
struct Session {
  std::string name;        // of the program, in a job of several
  std::vector<int> ranks;  // of the plan's devices; empty: all, in order
  Job job;
  Plan plan;
  std::optional<Plan> original;  // on the paced clock, instructions last as long as this one's
  std::string run_directory;
  std::string tokens;  // file of the corpus' tokens (int32, as the host has them); only rank 0 reads it
  std::vector<std::int32_t> prompt;
  std::map<std::string, std::string> checkpoint_files;  // further files of each checkpoint, by name

  const Plan& pace() const { return original ? *original : plan; }

  bool operator==(const Session&) const = default;
};

std::string to_bytes(std::span<const Session> sessions);

// Throws kControl with `place` when the bytes are no Sessions of this version.
std::vector<Session> sessions_from_bytes(std::string_view bytes, const std::string& place);

}  // namespace hyperrun
